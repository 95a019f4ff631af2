"""A trial: one job, or some, struck by one fault at one instant, and then held against every law."""

import random
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from jobs.states import State
from tests.faults.matrix.fault import Fault, Missed
from tests.faults.matrix.lane import Lane, Undisturbed
from trainer.journal import Metrics, read_records
from trainer.run_dir import RunDir

FINISHES_WITHIN_S = 150


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
        self.draws = random.Random(seed)
        self.is_ddp = number % fault.ddp_every == fault.ddp_every - 1  # the last: the short form has the first only
        self.instants_s: list[float] = []
        """What was drawn, for the record."""
        self._reach = reach
        self.hold_scale = hold_scale
        """Share of its full length that an outage lasts."""
        self.meanwhile = ExitStack()
        """Closed once the jobs are over: what goes on beside them until then."""
        self._jobs: dict[int, Undisturbed] = {}
        self.run_dirs: dict[int, Path] = {}
        """Of node 0, which has the journal, as of the last look; by job."""
        self._furthest: dict[int, int] = {}
        self._submitted_at = 0.0
        self._struck_at: float | None = None

    def submit(
        self,
        device: object = None,
        *,
        ranks: int = 2,
        nodes: int = 1,
        by: Callable[[dict[str, Any]], int] | None = None,
        **policy: Any,
    ) -> int:
        """Submit a job on so many ranks on each node, and return its id. Left out, `device` is any of that many.

        `by` submits it, and is handed what a client would post; left out, it is stored without the API.
        """
        undisturbed = self.lane.undisturbed(is_ddp=self.is_ddp, ranks=ranks, nodes=nodes)
        where = {"count": ranks} if device is None else device
        policy |= {"nodes": nodes} if nodes > 1 else {}
        spec = self.lane.spec(where, is_ddp=self.is_ddp, **policy)
        job_id = self.service.submit_exactly(**spec) if by is None else by(spec)
        self._jobs[job_id] = undisturbed
        self._submitted_at = time.monotonic()
        return job_id

    @property
    def length_s(self) -> float:
        """How long the longest of its jobs takes if nothing strikes, from submission to end, in seconds."""
        return max(each.length_s for each in self._jobs.values())

    @property
    def remaining_s(self) -> float:
        """How long the job submitted last would go on from now if nothing strikes, in seconds; at least half of one."""
        return max(0.5, self.length_s - (time.monotonic() - self._submitted_at))

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
        went_on_at: dict[int, float] = {}
        deadline = time.monotonic() + FINISHES_WITHIN_S
        open_ids = set(self._jobs)
        while open_ids:
            for job_id in sorted(open_ids):
                job = self.service.job(job_id)
                is_over = State(job.state).is_terminal
                if is_over or ((job.progress or {}).get("step") or 0) > self._furthest.get(job_id, 0):
                    went_on_at.setdefault(job_id, time.monotonic())
                if is_over:
                    open_ids.discard(job_id)
            assert time.monotonic() < deadline, self._story(open_ids)
            time.sleep(0.1)
        self.meanwhile.close()
        return max(went_on_at.values()) - self._struck_at

    def give_up(self) -> None:
        """Forget a trial whose fault came too late: its jobs are over, or about to be."""
        for job_id in self._jobs:
            self.service.wait_for(job_id, State.SUCCEEDED, State.FAILED, State.CANCELLED)
        self.meanwhile.close()
        self.service.assert_laws_held(*self._jobs)

    def assert_went_on(self, job_id: int) -> None:
        """Assert that what struck cost a job nothing: its first attempt is its only one."""
        assert len(self.service.attempts(job_id)) == 1, self._story({job_id})

    def assert_laws_held(self) -> None:
        """Hold the jobs, which are over, against the laws, and against the runs that nothing struck."""
        for job_id in self._jobs:
            assert State(self.service.job(job_id).state) in self.fault.ends, self._story({job_id})
        self.service.assert_laws_held(*self._jobs)
        placements = [each for job_id in self._jobs for each in self.lane.placements(job_id)]
        self.lane.watch.assert_nothing_ran_beside(placements)
        for job_id, undisturbed in self._jobs.items():
            if self.service.job(job_id).state == State.SUCCEEDED:
                assert self.lane.series_of(job_id) == undisturbed.series, f"job {job_id} tells of another training"
                assert self.lane.state_of(job_id) == undisturbed.state, f"job {job_id} has other weights"

    def _story(self, job_ids: set[int]) -> str:
        return "\n".join(self.service.story(job_id) for job_id in sorted(job_ids))


def _furthest_step(run_dir: Path) -> int:
    """The furthest step that a run has told of in its journal, which the database may not know of yet."""
    journal = RunDir(run_dir).journal
    if not journal.exists():
        return 0
    return max((each.step for each in read_records(journal) if isinstance(each, Metrics)), default=0)
