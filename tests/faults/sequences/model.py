"""The model: what a job must be after each call, in plain Python that shares no line with the store."""

from dataclasses import dataclass, field

from jobs.states import Intent, State, StopOrder
from jobs.store.attempts import Shipped
from jobs.tables import Placement
from trainer.errors import Cause
from trainer.journal import Record

ECHOES = {Cause.COMMUNICATION: 2, Cause.INTERRUPTED: 3}
"""Causes that another node's may be behind: the higher, the less one knows who says so."""
STOPPED_IN_ORDER = 1
MENDABLE = {
    *(Cause.KILLED_BY_SIGNAL, Cause.COMMUNICATION, Cause.HANG, Cause.DEVICE),
    *(Cause.DISK_FULL, Cause.INTERRUPTED, Cause.LOST),
}
OF_A_DEVICE = {Cause.KILLED_BY_SIGNAL, Cause.COMMUNICATION, Cause.HANG, Cause.DEVICE}


@dataclass(frozen=True)
class Fault:
    """Why a placement ended without having done its part."""

    cause: Cause
    spends_retry: bool = True
    has_rank: bool = False
    """Whether its first rank is known to be at fault."""

    @property
    def echo(self) -> int:
        if self.cause is Cause.INTERRUPTED and not self.spends_retry:
            return STOPPED_IN_ORDER
        return ECHOES.get(self.cause, 0)


@dataclass(frozen=True)
class Shipment:
    """What a supervisor shipped in one transaction."""

    shipped: Shipped
    to: Shipped
    records: tuple[Record, ...]


@dataclass(eq=False)
class Share:
    """A placement, as its supervisor has it."""

    job: "ModelJob"
    placement: Placement
    claimed: bool = False
    """Whether its supervisor has taken it; `supervisor` is who that is, or is to be."""
    run_out: bool = False
    """Whether its leases have."""
    shipped: Shipped = field(default_factory=lambda: Shipped(0, {}))
    shipments: list[Shipment] = field(default_factory=list)
    is_open: bool = True
    completed: bool = False
    fault: Fault | None = None

    @property
    def supervisor(self) -> str:
        return f"{self.placement.id}:1"

    @property
    def devices(self) -> list[tuple[str, str]]:
        return [(self.placement.host_name, name) for name in self.placement.devices]


@dataclass(eq=False)
class ModelJob:
    """A job, and the attempt that it is at."""

    id: int
    nodes: int
    devices_per_node: int
    priority: int
    max_retries: int
    preemptible: bool
    is_possible: bool
    state: State = State.QUEUED
    intent: Intent = Intent.RUN
    attempt: int = 0
    retries: int = 0
    rests: bool = False
    order: StopOrder | None = None
    step: int | None = None
    """How far the newest attempt has said that it is."""
    shares: list[Share] = field(default_factory=list)
    """Of the newest attempt, by node rank."""
    ends: list[Share] = field(default_factory=list)
    """Those of them that have ended, in this order."""
    moves: list[tuple[str | None, str | None]] = field(default_factory=list)
    told: list[tuple[str, int, int]] = field(default_factory=list)
    """What its attempts have reported: of which kind, by which attempt, at which step."""

    @property
    def is_live(self) -> bool:
        return self.state in (State.STARTING, State.RUNNING)

    def may_start(self) -> bool:
        return self.state is State.QUEUED and self.intent is Intent.RUN and not self.rests and self.is_possible

    def start(self, shares: list[Share]) -> None:
        self.attempt += 1
        self.shares, self.ends = shares, []
        self.order = self.step = None
        self._move(State.STARTING)

    def run(self) -> None:
        if self.state is State.STARTING:
            self._move(State.RUNNING)

    def want(self, intent: Intent) -> bool:
        """Write an intent; False where the job does not allow it."""
        if self.state.is_terminal or self.intent is Intent.CANCEL:
            return not self.state.is_terminal and intent is Intent.CANCEL
        if intent is Intent.RUN and self.intent is not Intent.RUN:
            self.rests = False
        self.intent = intent
        if self.state in (State.QUEUED, State.PAUSED):
            goal = {Intent.CANCEL: State.CANCELLED, Intent.PAUSE: State.PAUSED, Intent.RUN: State.QUEUED}[intent]
            if goal is not self.state:
                self._move(goal)
        return True

    def retry(self) -> bool:
        """Queue it again; False where it has not failed."""
        if self.state is not State.FAILED:
            return False
        self.intent, self.retries, self.rests = Intent.RUN, 0, False
        self._move(State.QUEUED)
        return True

    def end(self, share: Share, *, completed: bool, fault: Fault | None) -> bool:
        """End one placement; True if that ended the attempt."""
        share.is_open, share.completed, share.fault = False, completed, fault
        self.ends.append(share)
        if len(self.ends) < len(self.shares):
            self.order = self.order or StopOrder.PEER_ENDED
            return False
        self._conclude()
        return True

    @property
    def first(self) -> Share | None:
        """The share whose fault the others followed from, of an attempt that has ended."""
        faulty = [(share.fault.echo, place, share) for place, share in enumerate(self.ends) if share.fault]
        return min(faulty, key=lambda each: each[:2])[2] if faulty else None

    @property
    def has_succeeded(self) -> bool:
        return self.state is State.SUCCEEDED

    def was_lost_on(self) -> tuple[str, str] | None:
        """The device that the loss of the attempt is counted on, if it is."""
        first = self.first
        if self.has_succeeded or first is None or not first.fault or first.fault.cause not in OF_A_DEVICE:
            return None
        stopped = self.intent is not Intent.RUN or self.order in (StopOrder.PREEMPTED, StopOrder.DRAINED)
        return first.devices[0] if first.fault.has_rank and not stopped else None

    def _conclude(self) -> None:
        fault = self.first.fault if self.first else None
        if self.shares[0].completed:
            self._move(State.SUCCEEDED)
        elif self.intent is Intent.CANCEL:
            self._move(State.CANCELLED)
        elif fault is None or fault.cause not in MENDABLE:
            self._move(State.FAILED)
        elif self.intent is Intent.PAUSE:
            self._move(State.PAUSED)
        elif self.order in (StopOrder.PREEMPTED, StopOrder.DRAINED):
            self._move(State.QUEUED)
        elif fault.spends_retry:
            if self.retries == self.max_retries:
                self._move(State.FAILED)
                return
            self.retries += 1
            self.rests = True
            self._move(State.QUEUED)
        else:
            self.rests = fault.cause is not Cause.INTERRUPTED
            self._move(State.QUEUED)

    def _move(self, to: State) -> None:
        self.moves.append((self.state, to))
        self.state = to


@dataclass(eq=False)
class ModelDevice:
    losses: int = 0
    quarantined: bool = False


@dataclass(eq=False)
class ModelHost:
    """A host as the planner has to see it."""

    worker: str
    devices: dict[str, ModelDevice]
    silent: bool = False
    drained: bool = False
    removed: bool = False
    past_workers: list[str] = field(default_factory=list)

    @property
    def is_open(self) -> bool:
        return not (self.silent or self.drained or self.removed)
