"""A device while a plan is made: who has it, for whom it is set aside, and when it is free."""

import math
from collections.abc import Iterable

from jobs.planner.view import Device, RunningJob

Model = tuple[str, str | None, int | None]
"""What requests tell devices apart by: kind, model name, memory in bytes."""


class Slot:
    """A device that can be handed out, on an open host."""

    __slots__ = (
        "claims",
        "device",
        "free_at",
        "holder",
        "host",
        "is_leaving",
        "is_taken",
        "kept_for",
        "lent_until",
        "model",
        "stopped_for",
        "unforeseeable",
    )

    def __init__(self, device: Device, host: int) -> None:
        self.device = device
        self.host = host
        """Number of the host among the open ones."""
        self.model: Model = (device.kind, device.model, device.memory_bytes)
        self.is_taken = False
        """Whether a job has it: one that runs, or one that starts in this plan."""
        self.holder: int | None = None
        """That job."""
        self.is_leaving = False
        """Whether that job has been told to stop."""
        self.stopped_for: int | None = None
        """For which job this plan tells it so; None where it was told before."""
        self.kept_for: int | None = None
        """The first job for which it is set aside."""
        self.claims = 0
        """How many jobs wait for it, as far as that is worked out."""
        self.lent_until = math.inf
        """Until when a later job may use it, if it is free: for ever where it is set aside for nobody."""
        self.free_at = -math.inf
        """When it is expected to be free for who comes last in the line for it; infinity where that is unknown."""
        self.unforeseeable: int | None = None
        """Then the first job of which it is not known how long it runs."""

    @property
    def is_loose(self) -> bool:
        """Whether it is free and set aside for nobody."""
        return not self.is_taken and self.kept_for is None

    def can_be_used_until(self, ends: float) -> bool:
        """Whether it is free for a job that ends then (infinity where unknown), with no delay for those before it."""
        return not self.is_taken and self.lent_until >= ends

    def hold(self, job: RunningJob, until: float) -> None:
        """Note that a running job has it."""
        self.is_taken, self.holder, self.is_leaving = True, job.id, job.is_stopping
        self._is_used_until(until, job.id)

    def take(self, job_id: int, until: float) -> None:
        """Give it to a job that starts."""
        self.is_taken, self.holder = True, job_id
        self._is_used_until(until, job_id)

    def leave(self, now: float, job_id: int) -> None:
        """Note that the job on it is told to stop for another."""
        self.is_leaving, self.stopped_for, self.free_at, self.unforeseeable = True, job_id, now, None

    def book(self, until: float, unforeseeable: int | None) -> None:
        """Foretell that one more job has it until then, which is infinity for want of what is known of a job."""
        self.claims += 1
        self._is_used_until(until, unforeseeable)

    def set_aside(self, job_id: int, *, start: float | None, until: float, unforeseeable: int | None) -> None:
        """Keep it for a job which is expected to start then, if that is known, and to end at `until`."""
        if start is not None:
            self.lent_until = min(self.lent_until, start)
        elif self.kept_for is None:
            self.lent_until = -math.inf
        # Else it starts, whenever that may be, after one before it: what ends before that one starts delays neither.
        self.kept_for = job_id if self.kept_for is None else self.kept_for
        self.book(until, unforeseeable)

    def _is_used_until(self, until: float, job_id: int | None) -> None:
        if until == math.inf and self.unforeseeable is None:
            self.unforeseeable = job_id
        self.free_at = max(self.free_at, until)


def first_unforeseeable(slots: Iterable[Slot]) -> int | None:
    """Return a job of which it is not known how long it runs, so that nobody can say when all of these are free."""
    return next((slot.unforeseeable for slot in slots if slot.unforeseeable is not None), None)
