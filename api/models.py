"""What the API answers with, besides problems."""

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, computed_field

from jobs.spec import requested_ranks
from jobs.states import Intent, Outcome, State


class _Answer(BaseModel):
    model_config = ConfigDict(from_attributes=True, frozen=True, use_attribute_docstrings=True)


class Progress(BaseModel):
    """How far the newest attempt is."""

    model_config = ConfigDict(extra="allow", frozen=True, use_attribute_docstrings=True)

    step: int | None = None
    """Optimizer steps taken, over all attempts."""
    total_steps: int | None = None
    epoch: int | None = None
    """The epoch it is in, from 1."""
    epochs: int | None = None
    steps_per_epoch: int | None = None
    batch: int | None = None
    """Samples of each full global batch: with `batch` -1 as many as were found to fit."""
    batch_per_rank: int | None = None
    """Samples of it that one rank takes."""
    accumulate: int | None = None
    """Global batches that one optimizer step takes."""
    values: dict[str, float | None] = {}
    """The latest value of each metric."""


class Failure(BaseModel):
    """Why an attempt failed."""

    model_config = ConfigDict(extra="allow", frozen=True, use_attribute_docstrings=True)

    cause: str
    """The kind of failure: `config`, `data`, `non_finite_loss`, `out_of_memory`, `killed_by_signal`, `lost`, …"""
    message: str
    rank: int | None = None
    """The rank that failed first."""
    traceback: str | None = None
    """Of its exception; of a rank that hung, where it stood."""
    log_tail: str | None = None
    """The last lines that it printed, or its launcher where no rank was at fault."""


class Job(_Answer):
    """A job: what was asked for, and where it is."""

    id: int
    name: str
    state: State
    intent: Intent
    """What the user wants of it now."""
    attempt: int
    """Number of the newest attempt; 0 before the first."""
    retries: int
    """How many attempts the infrastructure has lost."""
    max_retries: int
    priority: int
    labels: dict[str, str]
    user: str | None
    """Whom it is for."""
    spec: dict[str, Any]
    """A JobSpec in its canonical form, as it was stored: one that this release cannot read is shown all the same. What
    was changed since, priority and labels, is beside it."""
    parent_id: int | None
    """The job that it was cloned from, or else whose checkpoint it starts from."""
    parent_checkpoint_id: int | None
    """The checkpoint that it starts from."""
    reason: str | None
    """What a queued job waits for."""
    failure: Failure | None
    """Why the attempt that failed last did."""
    progress: Progress | None
    created_at: datetime
    updated_at: datetime
    queued_at: datetime
    not_before: datetime | None
    """Until when a queued job rests after an attempt was lost."""
    started_at: datetime | None
    """When its first attempt began to train."""
    finished_at: datetime | None

    @computed_field  # type: ignore[prop-decorator]  # pydantic's own advice: mypy does not know decorated properties
    @property
    def world_size(self) -> int | None:
        """Number of ranks, over all hosts; null for a spec of another release that this one cannot read."""
        try:
            return requested_ranks(self.spec)
        except ValueError:
            return None


class SubmittedJob(Job):
    """A job that has just been accepted."""

    warnings: list[str] = []
    """What its submitter should know, such as that no host could run it now."""


class PlacedDevice(_Answer):
    """A device that an attempt was given."""

    name: str
    """`cuda:N` as the host's worker numbered it when the attempt got it, `mps`, or `cpu:N` for a slot."""
    driver_index: int | None
    """The number by which the driver of the host lists a GPU, as `nvidia-smi` prints it."""
    uuid: str | None
    """The driver's name for the physical GPU: the same in every attempt and view, whatever its number."""
    kind: str
    model: str | None
    simulated: bool
    """It only pretends to be a CUDA device, and computes on the CPU."""


class Placement(_Answer):
    """One host's share of an attempt."""

    node_rank: int
    host: str
    devices: list[PlacedDevice]
    """In rank order."""
    run_dir: str
    """Folder of its files on that host."""
    created_at: datetime
    claimed_at: datetime | None
    """When its supervisor took it."""
    ended_at: datetime | None


class Attempt(_Answer):
    """One try at running a job."""

    number: int
    outcome: Outcome | None
    """Null until it ends."""
    failure: Failure | None
    world_size: int
    resumed_step: int | None
    """Global step of the checkpoint it continued from."""
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    placements: list[Placement]


class Attempts(BaseModel):
    """All attempts of a job, oldest first."""

    items: list[Attempt]


class Metric(_Answer):
    """One value of one metric."""

    name: str
    step: int
    epoch: int
    attempt: int
    at: datetime
    value: float | None
    """Null where it is not finite."""
    kind: Literal["nan", "inf", "-inf"] | None
    """What a value was that is not finite."""


class Checkpoint(_Answer):
    """A committed checkpoint file."""

    id: int
    attempt: int
    host_name: str
    path: str
    """Absolute on that host."""
    step: int
    epoch: int
    """Epochs completed at that point."""
    sha256: str
    size_bytes: int
    best: bool
    """Its validation metric is the best of the job so far."""
    values: dict[str, float | None]
    """Validation values at that point."""
    created_at: datetime
    removed_at: datetime | None


class Event(_Answer):
    """Something that happened to a job."""

    id: int
    attempt: int
    at: datetime
    kind: str
    """`submitted`, `state`, `intent`, `retry`, `change`, `epoch`, `log`, `note`."""
    from_state: State | None
    to_state: State | None
    detail: dict[str, Any]


class LogChunk(_Answer):
    """A piece of one rank's output."""

    id: int
    attempt: int
    rank: int
    offset: int
    """Byte of the rank's log at which it begins."""
    text: str
    at: datetime


class Events(BaseModel):
    """A part of a job's events, oldest first."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    items: list[Event]
    after: int
    """Pass it as `after` to get what follows, now or later."""


class Logs(BaseModel):
    """A part of a job's output, in the order it was shipped."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    items: list[LogChunk]
    after: int
    """Pass it as `after` to get what follows, now or later."""


class Holder(BaseModel):
    """Who holds a device."""

    job_id: int
    attempt: int


class Device(PlacedDevice):
    """A device of a host, and who holds it."""

    memory_bytes: int | None
    held_by: Holder | None


class Host(_Answer):
    """A machine with a worker."""

    name: str
    alive: bool
    """Its worker has reported lately."""
    registered_at: datetime
    heartbeat_at: datetime
    devices: list[Device]


class Hosts(BaseModel):
    """All hosts, by name."""

    items: list[Host]


class Alive(BaseModel):
    """The process answers."""

    status: Literal["alive"] = "alive"


class Ready(BaseModel):
    """The service can take jobs."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    status: Literal["ready"] = "ready"
    broker: Literal["answers", "silent"]
    """A silent broker makes jobs start later, by up to a worker's tick, and loses none."""
