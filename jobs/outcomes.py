"""What the end of an attempt means: a pure function from what its files say and what the user wants."""

from jobs.states import Intent, Outcome
from trainer.errors import Cause

INFRASTRUCTURE = frozenset(
    {Cause.KILLED_BY_SIGNAL, Cause.COMMUNICATION, Cause.HANG, Cause.LOST, Cause.INTERRUPTED, Cause.DISK_FULL}
)
"""Causes that another try may mend; every other one is a fault of the training itself and fails at once."""


def conclude(*, completed: bool, cause: Cause, intent: Intent) -> Outcome:
    """Return how an attempt ended, given whether its journal holds the completion record and why it stopped if not."""
    if completed:
        return Outcome.SUCCEEDED
    if intent is Intent.CANCEL:
        return Outcome.CANCELLED
    if cause not in INFRASTRUCTURE:
        return Outcome.FAILED
    return Outcome.PAUSED if intent is Intent.PAUSE else Outcome.LOST
