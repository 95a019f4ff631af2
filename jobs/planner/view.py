"""What the planner sees, and what it decides. Times are seconds since the epoch, on the database's clock."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from jobs.planner.request import Request

Account = tuple[str, str]
"""Whose devices are counted: `("user", name)`, the name of no user being empty, or `("label", "key=value")`."""


@dataclass(frozen=True, slots=True)
class Device:
    """A device of a host."""

    id: int
    name: str
    """`cuda:N`, `mps`, or `cpu:N` for a CPU slot."""
    kind: str
    model: str | None = None
    memory_bytes: int | None = None
    quarantined: bool = False
    """It is not handed out."""


OUT_OF_CONTACT = "out of contact"
"""Why a host is closed whose worker has not reported of late."""


@dataclass(frozen=True, slots=True)
class Host:
    """A host with its devices."""

    name: str
    devices: tuple[Device, ...]
    closed: str | None = None
    """Why it gets no new jobs now, in words that follow its name: out of contact, drained, short of disk space."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """Devices that are set aside for a job which cannot start yet.

    It is kept from plan to plan, so that the devices of a gang are gathered rather than lost again one by one.
    """

    device_ids: tuple[int, ...]
    start: float | None = None
    """Until when others may use those that are free: the time by which all are expected to be, as first foretold or
    later brought forward, never put off. None where nothing can be foretold: then nobody else may, unless the device is
    set aside for one before it too and that one's start is known."""
    preempts: bool = False
    """Jobs were stopped for it: nobody else comes before it."""


@dataclass(frozen=True, slots=True)
class WaitingJob:
    """A queued job."""

    id: int
    priority: int
    waits_from: float
    request: Request
    user: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    duration_s: float | None = None
    """How long it will run, at most, once it starts: from the pace of an earlier attempt, or its time limit. None where
    nothing is known: then the worst is assumed."""
    not_before: float | None = None
    """Until when it rests after an attempt was lost."""
    reservation: Reservation | None = None
    """What the last plan set aside for it."""
    resumes_on: frozenset[str] | None = None
    """Hosts that can read the checkpoint it will continue from, and allow what it needs; None where any will do."""
    resume_note: str | None = None
    """That in words, such as `its checkpoint of step 500 is on alpha only`."""
    is_supposed: bool = False
    """Nobody submitted it: it is only asked what would become of it."""


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A job with a live attempt, and the devices this has."""

    id: int
    attempt: int
    priority: int
    device_ids: tuple[int, ...]
    user: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    preemptible: bool = False
    saved_at: float = 0.0
    """When its last checkpoint was saved, or else when its attempt began: what came after is lost if it is stopped."""
    predicted_end: float | None = None
    """By its measured pace, or its time limit; None where nothing is known."""
    is_stopping: bool = False
    """It has been told to stop already."""


@dataclass(frozen=True, slots=True)
class Quota:
    """The limit and the weight of an account."""

    account: Account
    """`("user", "*")` stands for each user that has no quota of its own."""
    max_devices: int | None = None
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class Policy:
    """The operator's settings (`jobs.settings` says what each means)."""

    ageing_s: float = 600
    fair_share_s: float = 3600
    patience_s: float = 300
    """`preemption_patience_s`."""
    reservations: int = 64
    """For how many jobs devices are set aside at most, of those that are first in the line for what they may use."""


@dataclass(frozen=True, slots=True)
class Scene:
    """All that one plan is made from."""

    now: float
    waiting: tuple[WaitingJob, ...]
    running: tuple[RunningJob, ...]
    hosts: tuple[Host, ...]
    quotas: tuple[Quota, ...] = ()
    usage: Mapping[Account, float] = field(default_factory=dict)
    """Device-seconds used lately, decayed to `now`."""
    policy: Policy = Policy()


@dataclass(frozen=True, slots=True)
class Node:
    """One host's share of a start."""

    host_name: str
    devices: tuple[Device, ...]
    """In rank order."""


@dataclass(frozen=True, slots=True)
class Start:
    """The job starts now, on these nodes."""

    job_id: int
    nodes: tuple[Node, ...]
    """By node_rank."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A device that a job waits for, and the job that has it, or is before it in the line for it."""

    host: str
    device: str
    job_id: int


@dataclass(frozen=True, slots=True)
class Wait:
    """The job stays queued."""

    job_id: int
    reason: str
    """What it waits for, in words; says nothing that changes with time alone."""
    line_key: float
    """Place in the line: of two waiting jobs the one with the smaller key comes first. Seconds since the epoch, brought
    forward by priority, put off by the share its user had lately."""
    predicted_start: float | None = None
    """None where nothing can be foretold, or the job is too far back in the line."""
    waits_for: tuple[Holder, ...] = ()
    """The first few of who is in the way."""
    reservation: Reservation | None = None


@dataclass(frozen=True, slots=True)
class Preempt:
    """The running job is told to stop, with a checkpoint, for a waiting one."""

    job_id: int
    attempt: int
    for_job: int


Decision = Start | Wait | Preempt
