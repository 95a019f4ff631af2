"""The bound on each job's wait, as docs/planning.md states it, worked out for the stream at hand."""

import heapq
from collections.abc import Iterable, Sequence

from jobs.planner.view import Policy, WaitingJob
from jobs.simulation.stream import StreamJob

HIGHEST_PRIORITY = 100


class Bounds:
    """What no wait may exceed: a time in which others may still come before a job, then a time for each that has."""

    def __init__(self, stream: Iterable[StreamJob], policy: Policy, *, slack_s: float) -> None:
        """`slack_s` is what passes at most, besides runs, until devices that are let go of are handed out again."""
        self._policy = policy
        self._slack_s = slack_s
        # What is foretold when devices are set aside, and what those in the way then really take.
        foretold_s = real_s = 0.0
        for job in stream:
            foretold_s = max(foretold_s, job.limit_s or 0, job.foretold_s or 0)
            real_s = max(real_s, job.real_s)
        self._each_s = foretold_s + real_s + slack_s
        self._open: list[tuple[float, int]] = []
        """Until when others may come before which job, a heap."""
        self._ahead: dict[int, int] = {}

    def arrive(self, job: WaitingJob) -> None:
        """Expect a job to start."""
        heapq.heappush(self._open, (job.waits_from + self._open_s(job.priority), job.id))

    def note(self, now: float, line: Sequence[int]) -> None:
        """Count who is before each job from whose place on nobody new can come before it. `line` has those who wait."""
        if not self._open or self._open[0][0] > now:
            return
        places = {job_id: place for place, job_id in enumerate(line)}
        while self._open and self._open[0][0] <= now:
            _, job_id = heapq.heappop(self._open)
            if job_id in places:
                self._ahead[job_id] = places[job_id]

    def of(self, job: WaitingJob) -> float:
        """Return the bound of a job that starts now, in seconds since its submission."""
        ahead = self._ahead.get(job.id)
        settled_s = self._open_s(job.priority) + self._slack_s
        return settled_s if ahead is None else settled_s + (ahead + 1) * self._each_s

    def _open_s(self, priority: int) -> float:
        return (HIGHEST_PRIORITY - priority) * self._policy.ageing_s + self._policy.fair_share_s
