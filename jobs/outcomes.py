"""What the end of an attempt means: pure functions from what its placements say and what is wanted of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jobs.states import Intent, Outcome, StopOrder
from trainer.errors import Cause

OF_A_DEVICE = frozenset({Cause.DEVICE, Cause.KILLED_BY_SIGNAL, Cause.COMMUNICATION, Cause.HANG})
"""Causes of a lost attempt that are, or may be, a fault of the device that the rank had."""
INFRASTRUCTURE = OF_A_DEVICE | {Cause.LOST, Cause.INTERRUPTED, Cause.DISK_FULL}
"""Causes that another try may mend; every other one is a fault of the training itself and fails at once."""
SAVED = frozenset({StopOrder.PREEMPTED, StopOrder.DRAINED})
"""Orders of the service that let the ranks save first: the attempt was in nobody's way, and spends no retry."""


@dataclass(frozen=True)
class Failure:
    """What one placement says of why it ended without having done its part."""

    node_rank: int
    report: dict[str, Any]
    """Its error report (`trainer.error_report`), as JSON."""
    spends_retry: bool
    """False where whoever shut its host down told it to stop, and where its host could not begin it."""
    ended_at: datetime

    @property
    def cause(self) -> Cause:
        return Cause(self.report["cause"])

    @property
    def may_be_of_a_device(self) -> bool:
        """Whether the device that the rank had may have caused it; it has no part in what the host's memory is for."""
        return self.cause in OF_A_DEVICE and not self.report.get("oom_kill")


def first_failure(failures: Sequence[Failure]) -> Failure | None:
    """Return the failure that the others followed from: the first by time, of those that are more than an echo.

    The ranks of the other nodes lose their peers, or are stopped with them, and say so perhaps before the node at fault
    has said anything. Times are those of the hosts' own clocks.
    """
    return min(failures, key=lambda failure: (_echo(failure), _time(failure), failure.node_rank), default=None)


def conclude(*, completed: bool, cause: Cause, intent: Intent, order: StopOrder | None = None) -> Outcome:
    """Return how an attempt ended, given whether its journal holds the completion record and why it stopped if not.

    `order` is what the service itself wanted of it; the user's intent comes before that.
    """
    if completed:
        return Outcome.SUCCEEDED
    if intent is Intent.CANCEL:
        return Outcome.CANCELLED
    if cause not in INFRASTRUCTURE:
        return Outcome.FAILED
    if intent is Intent.PAUSE:
        return Outcome.PAUSED
    return Outcome.PREEMPTED if order in SAVED else Outcome.LOST


def backoff_s(losses: int, *, first_s: float, longest_s: float) -> float:
    """Return for how many seconds a job rests after its so manieth lost attempt: each time twice as long."""
    return min(first_s * 2.0 ** min(losses - 1, 1000), longest_s)


def _echo(failure: Failure) -> int:
    if failure.cause is Cause.COMMUNICATION:
        return 2
    if failure.cause is Cause.INTERRUPTED:
        return 1 if not failure.spends_retry else 3  # 3: its peers ended, or somebody we do not know stopped it
    return 0


def _time(failure: Failure) -> datetime:
    told = failure.report.get("time")
    return datetime.fromisoformat(told) if isinstance(told, str) else failure.ended_at
