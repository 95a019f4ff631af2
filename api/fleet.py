"""What the API takes and answers of hosts, their devices, and quotas."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from api.models import PlacedDevice
from jobs.whole_numbers import WholeNumbers


class _Taken(WholeNumbers):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False)


class _Shown(BaseModel):
    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)


class Drain(_Taken):
    """How a host is drained."""

    note: Annotated[str, Field(max_length=1000, pattern=r"^[^\x00]*$")] | None = None
    """Why, for those whose jobs wait for it."""
    evict: bool = Field(default=False, strict=True)
    """Whether the jobs that run there are to save and stop, to go on elsewhere; else they run to their end."""


class Quarantine(_Taken):
    """Why a device is to be handed out no more."""

    reason: Annotated[str, Field(min_length=1, max_length=1000, pattern=r"^[^\x00]*$")]
    """In words, for those whose jobs wait for it and for whoever releases it."""


class QuotaSetting(_Taken):
    """The quota of a user, or of a label."""

    max_devices: int | None = Field(default=None, ge=0, le=2**31 - 1, strict=True)
    """Most devices that its jobs hold at once, a CPU slot counting as one; null sets no limit."""
    share: float = Field(default=1.0, gt=0, le=1e6, strict=True)
    """Weight in the fair share: who has 2 may use twice as much as who has 1 before its jobs stand further back."""


class Holder(_Shown):
    """An attempt that holds a device."""

    job_id: int
    attempt: int


class Device(PlacedDevice):
    """A device of a host, and who holds it."""

    memory_bytes: int | None
    held_by: Holder | None
    losses: int
    """Attempts in a row that were lost by a fault that may be its own."""
    quarantined_at: datetime | None
    """Since when it is not handed out, until somebody releases it."""
    quarantine_reason: str | None


class Host(_Shown):
    """A machine with a worker."""

    name: str
    alive: bool
    """Its worker has reported lately."""
    closed: str | None
    """Why it gets no new jobs now, in words that follow "the host is"; null where it does."""
    registered_at: datetime
    heartbeat_at: datetime
    drained_at: datetime | None
    """Since when it is drained."""
    drain_note: str | None
    address: str | None
    """Where the ranks of other hosts reach it."""
    free_bytes: int | None
    """Space left on its run root."""
    running: list[Holder]
    """The attempts that have a part of them there, by job."""
    devices: list[Device]


class Hosts(BaseModel):
    """All hosts, by name."""

    items: list[Host]


class Use(_Shown):
    """What an account's jobs have, and had lately."""

    held_devices: int
    recent_device_s: float
    """Device-seconds used lately, those held now included: each counts half after every `fair_share_half_life_s`."""


class Quota(_Shown):
    """The quota of a user, or of a label."""

    kind: Literal["user", "label"]
    subject: str
    """The user's name, `*` for each user that has no quota of its own, or `key=value`."""
    max_devices: int | None
    """Most devices held at once; null sets no limit."""
    share: float
    """Weight in the fair share; 1 is everybody's."""
    use: Use | None
    """Null for `*`, which is nobody's own."""


class UserUse(Use):
    """What a user's jobs have, and had lately."""

    user: str | None
    """Null for the jobs that have no user."""


class Quotas(BaseModel):
    """All quotas, and the use of every user that has any."""

    items: list[Quota]
    users: list[UserUse]
