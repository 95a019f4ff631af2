"""Faults and whims of clients: the API dies while it answers one; a job is cancelled at any time."""

import http.client
import json
import time
import uuid
from contextlib import closing, suppress
from datetime import datetime
from typing import Any

from sqlalchemy import func, select

from jobs.states import State
from jobs.tables import Job, Lease, PlanningRound, SubmissionKey
from tests.api_server import ApiServer
from tests.faults.matrix.fault import Fault
from tests.faults.matrix.trial import Trial
from tests.waiting import wait_until

DIES_WITHIN_S = 0.04
"""From when the request was sent: before it is read, while it is stored, or when it is answered. Longer where an answer
takes longer, or all would die before they store anything."""
REPLAYS = 3
CANCELLED_WITHIN_S = 5
FREE_WITHIN_S = 10
CANCELLABLE_PACE_S = 0.75
CANCELLABLE_EPOCHS = 200
"""With these a run lasts for much longer than until then, so that nothing but the cancel ends it."""


def kill_api(trial: Trial) -> None:
    """A client that got no answer sends its request again, under the same key, until it gets one."""
    api = trial.lane.api()
    dies_within_s = max(DIES_WITHIN_S, 2 * _answer_s(api))
    headers = {"Content-Type": "application/json", "Idempotency-Key": str(uuid.UUID(int=trial.draws.getrandbits(128)))}

    def submit(spec: dict[str, Any]) -> int:
        answered = set()
        with closing(http.client.HTTPConnection(api.url.removeprefix("http://"))) as connection:
            connection.request("POST", "/jobs", json.dumps(spec), headers)
            time.sleep(trial.draw(dies_within_s))
            api.kill()
            with suppress(ConnectionError, http.client.HTTPException, ValueError):
                answered.add(json.loads(connection.getresponse().read())["id"])
        trial.struck()
        api.start()
        for _replay in range(REPLAYS):
            answer = api.http.post("/jobs", json=spec, headers=headers)
            assert answer.status_code == 201, answer.text
            answered.add(answer.json()["id"])
        (job_id,) = answered
        assert isinstance(job_id, int)
        return job_id

    trial.submit(ranks=1, by=submit, name=headers["Idempotency-Key"])
    with trial.service.database.session_scope(read_only=True) as session:
        keys = select(func.count()).where(SubmissionKey.key == headers["Idempotency-Key"])
        assert session.scalar(keys) == 1
        named = select(func.count()).select_from(Job).where(Job.name == headers["Idempotency-Key"])
        assert session.scalar(named) == 1


def _answer_s(api: ApiServer) -> float:
    """How long a submission takes, in seconds: the second, a warm one, of two that can never run."""
    for _warm in range(2):
        began = time.monotonic()
        job_id = api.submit(device={"count": 1, "host": "nowhere"})
        took_s = time.monotonic() - began
        assert api.http.post(f"/jobs/{job_id}/cancel").is_success
    return took_s


def cancel(trial: Trial) -> None:
    """It ends within 10 s with all its devices free, and never runs again."""
    api = trial.lane.api()
    job_id = trial.submit(pace_s=CANCELLABLE_PACE_S, epochs=CANCELLABLE_EPOCHS)
    trial.pause(CANCELLED_WITHIN_S)
    assert api.http.post(f"/jobs/{job_id}/cancel").is_success
    trial.struck()
    wait_until(
        lambda: State(trial.service.job(job_id).state).is_terminal and not _held(trial, job_id),
        timeout_s=FREE_WITHIN_S,
        what=lambda: f"free devices; {trial.service.story(job_id)}",
    )
    trial.meanwhile.callback(_assert_not_planned_again, trial, job_id)


def _held(trial: Trial, job_id: int) -> bool:
    """Whether the job holds any device."""
    with trial.service.database.session_scope(read_only=True) as session:
        query = select(Lease.id).where(Lease.job_id == job_id, Lease.released_at.is_(None))
        return session.scalar(query.limit(1)) is not None


def _assert_not_planned_again(trial: Trial, job_id: int) -> None:
    """The next round of planning leaves it as it is."""
    over = trial.service.job(job_id)
    ended_at = over.finished_at
    assert ended_at is not None
    wait_until(lambda: _planned_at(trial) > ended_at, timeout_s=10, what="another round of planning")
    after = trial.service.job(job_id)
    assert (after.state, after.attempt) == (over.state, over.attempt)


def _planned_at(trial: Trial) -> datetime:
    with trial.service.database.session_scope(read_only=True) as session:
        return session.scalars(select(PlanningRound.began_at)).one()


FAULTS = (
    Fault("kill -9 of the API in the middle of a POST, which is replayed", kill_api),
    Fault("cancel 0 to 5 s after submission", cancel, ends=frozenset({State.CANCELLED})),
)
