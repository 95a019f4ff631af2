"""The users of the chaos run: they submit jobs over HTTP, again until they are answered, and change their minds."""

import random
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2

from jobs.states import Intent, State
from tests.api_server import ApiServer
from tests.faults.chaos.work import Work

MOST_OPEN = 16
"""Jobs that wait or run at once: no more are submitted before one of these is over."""
AGAIN_S = 0.2
"""Seconds after which a request that was not answered is sent again."""
REPLAYED = 0.1
"""Share of submissions that are sent once more though they were answered."""


class Users(threading.Thread):
    """Submits all of the work, one job after the other, while other threads send what users want of them."""

    def __init__(self, api: ApiServer, work: Sequence[Work], draws: random.Random) -> None:
        super().__init__(name="users", daemon=True)
        self._work = work
        self._draws = draws
        self._http = httpx2.Client(base_url=api.url, timeout=10)
        self._verbs = ThreadPoolExecutor(4, thread_name_prefix="verbs")
        self._stopping = threading.Event()
        self.is_posting = threading.Event()
        """Set while the answer to a submission is out."""
        self.accepted: dict[int, Work] = {}
        """The jobs that a user was told are accepted, by id."""
        self.cancelled: set[int] = set()
        """Those that somebody wanted to cancel, whether that was answered or not."""
        self.last_attempts: dict[int, int] = {}
        """The attempt that each was in when a user was told that it is cancelled, or will be: there may be no other."""
        self.interrupted: set[int] = set()
        """Those of which a rank got SIGINT: to a program that is an exception of its own, and its job has failed."""
        self.open: frozenset[int] = frozenset()
        """Those that were not over at the last look; for the others to keep up to date."""
        self.unanswered = 0
        """How many submissions were sent again because no answer, or a refusal for now, came."""
        self.broken: list[str] = []
        """Answers that nobody should get."""

    def run(self) -> None:
        for work in self._work:
            while len(self.open) >= MOST_OPEN and not self._stopping.wait(AGAIN_S):
                pass
            job_id = self._submit(work)
            if job_id is None:
                return
            if job_id in self.accepted:
                self.broken.append(f"{work.key} was told job {job_id}, which is {self.accepted[job_id].key}")
            self.accepted[job_id] = work
            self.open |= {job_id}
            if self._draws.random() < REPLAYED and self._submit(work) not in (job_id, None):
                self.broken.append(f"{work.key} was sent again, and is another job than {job_id} now")

    def cancel(self, job_id: int) -> None:
        """Ask for the end of a job, once: the answer may be lost, and so may the question."""
        self.cancelled.add(job_id)
        self._verbs.submit(self._ask, job_id, "cancel")

    def pause(self, job_id: int) -> None:
        self._verbs.submit(self._ask, job_id, "pause")

    def resume(self, job_id: int) -> None:
        self._verbs.submit(self._ask, job_id, "resume")

    def retry(self, job_id: int) -> None:
        self._verbs.submit(self._ask, job_id, "retry")

    def close(self) -> None:
        """Send nothing more."""
        self._stopping.set()
        if self.is_alive():
            self.join()
        self._verbs.shutdown()
        self._http.close()

    def _submit(self, work: Work) -> int | None:
        """Send a submission until it is answered, and return the job's id; None when nothing is to be sent any more."""
        while not self._stopping.is_set():
            self.is_posting.set()
            try:
                answer = self._http.post("/jobs", json=work.spec, headers={"Idempotency-Key": work.key})
            except httpx2.TransportError:
                answer = None
            finally:
                self.is_posting.clear()
            if answer is not None and answer.status_code == 201:
                return int(answer.json()["id"])
            if answer is not None and answer.status_code != 503:
                self.broken.append(f"{work.key} was answered {answer.status_code}: {answer.text}")
                return None
            self.unanswered += 1
            time.sleep(AGAIN_S)
        return None

    def _ask(self, job_id: int, verb: str) -> None:
        try:
            answer = self._http.post(f"/jobs/{job_id}/{verb}")
        except httpx2.TransportError:
            return
        # 409: the job was over, or cancelled, before the request came.
        if answer.status_code not in (200, 409, 503):
            self.broken.append(f"{verb} of job {job_id} was answered {answer.status_code}: {answer.text}")
        elif verb == "cancel" and answer.status_code == 200:
            self._was_cancelled(answer.json())

    def _was_cancelled(self, job: dict[str, Any]) -> None:
        """Take down what a cancel was answered."""
        if job["intent"] == Intent.CANCEL:
            self.last_attempts.setdefault(job["id"], job["attempt"])
        elif not State(job["state"]).is_terminal:  # what is over stays as it is
            self.broken.append(
                f"a cancel of job {job['id']} was accepted, and it is {job['state']}, to {job['intent']}"
            )
