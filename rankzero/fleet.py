"""What the service answers with about hosts, quotas and plans, as the client returns it."""

from collections.abc import Mapping
from datetime import datetime

from rankzero.models import Answer, Device, Holder


class HostDevice(Device):
    """A device of a host; `held_by` names the job and the attempt that hold it."""

    held_by: Mapping[str, int] | None
    quarantined_at: datetime | None = None
    """Since when it is not handed out, until somebody releases it."""
    quarantine_reason: str | None = None


class Host(Answer):
    """A machine with a worker."""

    name: str
    alive: bool
    closed: str | None = None
    """Why it gets no new jobs now."""
    heartbeat_at: datetime
    drained_at: datetime | None = None
    drain_note: str | None = None
    free_bytes: int | None = None
    """Space left on its run root."""
    devices: tuple[HostDevice, ...]


class Use(Answer):
    """What an account's jobs hold, and have used lately."""

    held_devices: int
    recent_device_s: float
    """Device-seconds, which fade with time."""


class UserUse(Use):
    """The use of one user; None stands for the jobs that have none."""

    user: str | None


class Quota(Answer):
    """How many devices the jobs of a user, or with a label, may hold at once, and their share."""

    kind: str
    """`user` or `label`."""
    subject: str
    """The user's name, `*` for each user that has no quota of its own, or `key=value`."""
    max_devices: int | None
    share: float
    use: Use | None = None


class Quotas(Answer):
    """All quotas, and the use of every user that has any."""

    items: tuple[Quota, ...]
    users: tuple[UserUse, ...]


class PlannedPlacement(Answer):
    """One host's share of the attempt that would begin."""

    node_rank: int
    host: str
    devices: tuple[str, ...]


class CandidateHost(Answer):
    """A host that could take the job, or one node of it, now or later."""

    host: str
    closed: str | None
    """Why it gets no new jobs now."""
    devices: int
    """How many of its devices the job may use, busy or not."""
    free: tuple[str, ...]


class Plan(Answer):
    """What would come of a job that is submitted now."""

    starts_now: bool
    placements: tuple[PlannedPlacement, ...]
    """Where, by node; empty where it would wait."""
    reason: str | None
    """What it would wait for."""
    position: int
    """Its place in the line, from 1."""
    predicted_start: datetime | None
    waits_for: tuple[Holder, ...]
    world_size: int
    batch_per_rank: int | None
    """Samples of each global batch that one rank takes; None where the run itself finds its batch, and for a script."""
    hosts: tuple[CandidateHost, ...]
    warnings: tuple[str, ...]
