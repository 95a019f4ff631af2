"""The bound on each job's wait, as docs/planning.md states it, with the figures of the stream at hand."""

import heapq
from collections.abc import Iterable, Sequence

from jobs.planner.bounds import longest_wait_s, passed_for_s
from jobs.planner.view import Decision, Policy, Preempt, Start, Wait, WaitingJob
from jobs.simulation.stream import StreamJob


class Bounds:
    """What no wait may exceed: a time in which others may still come before a job, then one for each that does."""

    def __init__(self, stream: Iterable[StreamJob], policy: Policy, *, slack_s: float) -> None:
        """`slack_s` is what passes at most, besides runs, until devices that are let go of are handed out again."""
        self._policy = policy
        self._run_s = max((job.real_s for job in stream), default=0) + slack_s
        self._foretold_s = 0.0
        """The longest time from a plan to the start of a reservation that it foretold, so far."""
        self._passed: list[tuple[float, int]] = []
        """Until when others may come before which job, a heap."""
        self._ahead: dict[int, int] = {}
        """By job that waits and has nobody new before it: how often one before it has started, or come back to where it
        stood, since then."""
        self._back: set[int] = set()
        """Jobs that came back since the last plan."""

    def arrive(self, job: WaitingJob) -> None:
        """Expect a job to start."""
        heapq.heappush(self._passed, (job.waits_from + passed_for_s(job.priority, self._policy), job.id))

    def come_back(self, job_id: int) -> None:
        """Count that a job which was stopped is in the line again."""
        self._back.add(job_id)

    def note(self, now: float, decisions: Sequence[Decision]) -> None:
        """Take a plan into account, before those that it starts are asked about."""
        while self._passed and self._passed[0][0] <= now:
            self._ahead[heapq.heappop(self._passed)[1]] = 0
        before = 0
        for decision in decisions:
            if isinstance(decision, Preempt):
                continue
            if decision.job_id in self._ahead:
                self._ahead[decision.job_id] += before
            before += isinstance(decision, Start) + (decision.job_id in self._back)
            start = decision.reservation.start if isinstance(decision, Wait) and decision.reservation else None
            if start is not None:
                self._foretold_s = max(self._foretold_s, start - now)
        self._back.clear()

    def of(self, job: WaitingJob) -> float:
        """Return the bound of a job that starts now, in seconds since its submission."""
        ahead = self._ahead.pop(job.id, None)
        if ahead is None:
            return passed_for_s(job.priority, self._policy) + self._run_s
        return longest_wait_s(job.priority, self._policy, ahead=ahead, foretold_s=self._foretold_s, run_s=self._run_s)
