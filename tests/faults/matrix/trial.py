"""A trial: one job, or some, struck by one fault at one instant, and then held against every law."""

import random
import time
from collections.abc import Callable, Collection
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobs.states import State
from tests.faults.matrix.fault import Fault, Missed
from tests.faults.matrix.lane import Lane, Undisturbed
from tests.service import PROGRAM_PACE_S, PROGRAM_STEPS
from trainer.journal import Metrics, read_records
from trainer.run_dir import RunDir
from worker.processes import MarkedProcess

FINISHES_WITHIN_S = 150
RECOVERS_WITHIN_S = 90
"""Of any fault, beside other lanes: without the noticing that is tried here, it takes a lease of hours, or for ever."""
GONE_WITHIN_S = 10
"""From the end of a job to that of its last process."""
LEASE_RAN_OUT = "its lease ran out"
"""What the failure of an attempt says that nobody has proven dead."""


@dataclass
class Watched:
    """A job of a trial: what it is to be like, and what became of it, by the monotonic clock."""

    undisturbed: Undisturbed
    length_s: float
    """How long it takes if nothing strikes, from submission to end."""
    submitted_at: float
    went_on_at: float | None = None
    ended_at: float | None = None
    is_gone: bool = False
    """Whether it has ended and so have its processes."""


class Trial:
    """One repeat of a fault. `fault.strike` is handed this, and asks it for jobs, instants, and the lane."""

    def __init__(
        self, lane: Lane, fault: Fault, *, number: int, seed: str, hold_scale: float, reach: float = 1
    ) -> None:
        """`seed` decides every draw; `number` counts the repeats of the fault from 0; for `hold_scale` see `hold`.

        `reach` is the share of their range that instants are drawn from: less where one came too late, since how long a
        job takes was measured when the machine may have had more to do.
        """
        self.lane = lane
        self.service = lane.service
        self.fault = fault
        self.seed = seed
        self.draws = random.Random(seed)
        self.is_ddp = number % fault.ddp_every == fault.ddp_every - 1  # the last: the short form has the first only
        self.instants_s: list[float] = []
        """What was drawn, for the record."""
        self._reach = reach
        self.hold_scale = hold_scale
        """Share of its full length that an outage lasts."""
        self.meanwhile = ExitStack()
        """Closed once the jobs are over: what goes on beside them until then."""
        self.standing: set[int] = set()
        """Processes that cannot end, since the fault has stopped them: whoever adds one waits for its end."""
        self._jobs: dict[int, Watched] = {}
        self.run_dirs: dict[int, Path] = {}
        """Of node 0, which has the journal, as of the last look; by job."""
        self._furthest: dict[int, int] = {}
        self._struck_at: float | None = None

    def submit(
        self,
        device: object = None,
        *,
        ranks: int = 2,
        nodes: int = 1,
        pace_s: float = PROGRAM_PACE_S,
        by: Callable[[dict[str, Any]], int] | None = None,
        **policy: Any,
    ) -> int:
        """Submit a job on so many ranks on each node, and return its id. Left out, `device` is any of that many.

        A step of the program takes `pace_s`; DistributedDataParallel goes as fast as it can. `by` submits the job, and
        is handed what a client would post; left out, it is stored without the API.
        """
        undisturbed = self.lane.undisturbed(is_ddp=self.is_ddp, ranks=ranks, nodes=nodes)
        where = {"count": ranks} if device is None else device
        policy |= {"nodes": nodes} if nodes > 1 else {}
        spec = self.lane.spec(where, is_ddp=self.is_ddp, pace_s=pace_s, **policy)
        job_id = self.service.submit_exactly(**spec) if by is None else by(spec)
        slower_s = 0 if self.is_ddp else PROGRAM_STEPS * (pace_s - PROGRAM_PACE_S)
        self._jobs[job_id] = Watched(undisturbed, undisturbed.length_s + slower_s, time.monotonic())
        return job_id

    @property
    def length_s(self) -> float:
        """How long the longest of its jobs takes if nothing strikes, from submission to end, in seconds."""
        return max(each.length_s for each in self._jobs.values())

    @property
    def remaining_s(self) -> float:
        """How long the job submitted last would go on from now if nothing strikes, in seconds; at least half of one."""
        newest = self._jobs[max(self._jobs)]
        return max(0.5, newest.length_s - (time.monotonic() - newest.submitted_at))

    def pause(self, up_to_s: float) -> None:
        """Wait for an instant drawn from 0 to `up_to_s` seconds from now. Raises Missed if the jobs are over then."""
        time.sleep(self.draw(up_to_s))
        self.look()

    def draw(self, up_to_s: float) -> float:
        """Draw an instant from 0 to `up_to_s` seconds, and note it."""
        self.instants_s.append(self.draws.uniform(0, up_to_s * self._reach))
        return self.instants_s[-1]

    def hold(self, seconds: float) -> None:
        """Let an outage last so long, or a share of it, `hold_scale`, in a short form of the matrix."""
        time.sleep(seconds * self.hold_scale)

    def look(self) -> None:
        """Note where the jobs are, right before a strike. Raises Missed if they are over."""
        if all(State(self.service.job(job_id).state).is_terminal for job_id in self._jobs):
            raise Missed
        for job_id in self._jobs:
            placements = self.lane.placements(job_id)
            if placements:
                newest = [each for each in placements if each.attempt == placements[-1].attempt]
                self.run_dirs[job_id] = Path(newest[0].run_dir)

    def struck(self, *, at_s: float | None = None) -> None:
        """Say that from now on the service may recover: the time that it takes is counted from here.

        Or from `at_s` of the monotonic clock, for a strike after which what it struck could still take some steps.
        """
        self._furthest = {job_id: _furthest_step(run_dir) for job_id, run_dir in self.run_dirs.items()}
        self._struck_at = time.monotonic() if at_s is None else at_s

    def finish(self) -> float:
        """Wait for the end of the jobs, and return how long they took to go on, in seconds: the slowest of them.

        A job goes on when the database knows of a step beyond all that had been taken before the strike, or of its end.
        """
        assert self._struck_at is not None, f"{self.fault.name}: the strike was not noted"
        self._wait_for_end()
        self.meanwhile.close()
        recovery_s = max(job.went_on_at or job.ended_at or 0 for job in self._jobs.values()) - self._struck_at
        assert recovery_s < RECOVERS_WITHIN_S, f"it took {recovery_s:.0f} s to go on; {self._story(self._jobs)}"
        return recovery_s

    def give_up(self) -> None:
        """Forget a trial whose fault came too late: its jobs are over, or about to be, as if it never had been."""
        self._wait_for_end()
        self.meanwhile.close()
        is_struck = self._struck_at is not None  # by the first of several
        self._assert_laws_held(ends={State.SUCCEEDED}, attempts=self.fault.attempts if is_struck else 1)

    def undo(self, error: BaseException) -> None:
        """Undo what the strike has left of a trial that broke by `error`, which is told how to repeat it."""
        error.add_note(f"trial {self.seed}, struck at {[round(each, 3) for each in self.instants_s]} s")
        try:
            self.meanwhile.close()
        except Exception as another:  # noqa: BLE001  # whatever it is, it must not hide the first
            error.add_note(f"as it was undone: {another}")

    def assert_went_on(self, job_id: int) -> None:
        """Assert that what struck cost a job nothing: its first attempt is its only one."""
        assert len(self.service.attempts(job_id)) == 1, self._story({job_id})

    def assert_laws_held(self) -> None:
        """Hold the jobs, which are over, against the laws, and against the runs that nothing struck."""
        self._assert_laws_held(ends=self.fault.ends, attempts=self.fault.attempts)

    def _wait_for_end(self) -> None:
        """Wait until all jobs and their processes have ended, the latter in time; note when they went on."""
        deadline = time.monotonic() + FINISHES_WITHIN_S
        while open_ids := [job_id for job_id, job in self._jobs.items() if not job.is_gone]:
            for job_id in open_ids:
                self._look_at(job_id)
            assert time.monotonic() < deadline, self._story(open_ids)
            time.sleep(0.1)

    def _look_at(self, job_id: int) -> None:
        watched, job = self._jobs[job_id], self.service.job(job_id)
        now = time.monotonic()
        if State(job.state).is_terminal and watched.ended_at is None:
            watched.ended_at = now
        step = (job.progress or {}).get("step") or 0
        if watched.went_on_at is None and (watched.ended_at or step > self._furthest.get(job_id, 0)):
            watched.went_on_at = now
        if watched.ended_at is not None:
            left = self._processes_of(job_id)
            watched.is_gone = not left
            assert now - watched.ended_at < GONE_WITHIN_S, f"job {job_id} has ended, but not {left}"

    def _processes_of(self, job_id: int) -> list[MarkedProcess]:
        run_dirs = {each.run_dir for each in self.lane.placements(job_id)}
        left = [each for each in self.service.processes() if {each.run_dir, each.supervisor_of} & run_dirs]
        return [each for each in left if each.pid not in self.standing]

    def _assert_laws_held(self, *, ends: Collection[State], attempts: int) -> None:
        for job_id in self._jobs:
            assert State(self.service.job(job_id).state) in ends, self._story({job_id})
            self._assert_cost(job_id, attempts)
        self.service.assert_laws_held(*self._jobs)
        self.lane.watch.assert_nothing_ran_beside([each for id_ in self._jobs for each in self.lane.placements(id_)])
        self.lane.logs.assert_no_defect_was_told()
        for job_id, watched in self._jobs.items():
            if self.service.job(job_id).state == State.SUCCEEDED:
                assert self.lane.watch.seen(self.lane.placements(job_id)[-1:]), f"the witness did not see job {job_id}"
                assert self.lane.series_of(job_id) == watched.undisturbed.series, f"job {job_id} tells otherwise"
                assert self.lane.state_of(job_id) == watched.undisturbed.state, f"job {job_id} has other weights"

    def _assert_cost(self, job_id: int, most_attempts: int) -> None:
        """Assert that a job took no more attempts than its fault explains, and let no lease run out unless it does."""
        attempts = self.service.attempts(job_id)
        assert len(attempts) <= most_attempts, f"job {job_id} took {len(attempts)} attempts; {self._story({job_id})}"
        if not self.fault.outlasts_lease:
            ran_out = [each.number for each in attempts if LEASE_RAN_OUT in str((each.failure or {}).get("message"))]
            assert not ran_out, f"nobody missed attempts {ran_out} until their lease ran out; {self._story({job_id})}"

    def _story(self, job_ids: Collection[int]) -> str:
        return "\n".join(self.service.story(job_id) for job_id in sorted(job_ids))


def _furthest_step(run_dir: Path) -> int:
    """The furthest step that a run has told of in its journal, which the database may not know of yet."""
    journal = RunDir(run_dir).journal
    if not journal.exists():
        return 0
    return max((each.step for each in read_records(journal) if isinstance(each, Metrics)), default=0)
