"""What the API answers with, besides problems."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AliasPath, BaseModel, BeforeValidator, ConfigDict, Field, computed_field

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
    """The last lines that it printed, or its launcher where no rank was at fault; empty where nothing was."""


class Obstacle(_Answer):
    """A device that a job waits for."""

    host: str
    device: str
    job_id: int
    """The job that holds it, or comes before for it."""


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
    spec: Annotated[dict[str, Any], Field(title="Stored spec")]  # by its own, clients would call it JobSpec as well
    """A JobSpec in its canonical form, as it was stored: one that this release cannot read is shown all the same. What
    was changed since, priority and labels, is beside it."""
    parent_id: int | None
    """The job that it was cloned from, or else whose checkpoint it starts from."""
    parent_checkpoint_id: int | None
    """The checkpoint that it starts from."""
    reason: str | None
    """What a queued job waits for."""
    position: int | None = None
    """Place of a queued job in the line, from 1, when it was last planned; null until it has been."""
    predicted_start: datetime | None
    """When a queued job will start, by what was known then; null where nothing can be foretold."""
    waits_for: Annotated[list[Obstacle], BeforeValidator(lambda stored: stored or [])]
    """The first few devices in a queued job's way."""
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
    stop_message: str | None
    """Why the service itself told it to stop, if it did: `preempted by job 18`, `host alpha is drained`."""
    world_size: int
    resumed_step: int | None
    """Global step of the checkpoint it continued from."""
    resume_checkpoint_id: int | None
    """The checkpoint it begins with, its own or that of another job, once decided; null where it begins anew."""
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
    doomed_at: datetime | None
    """Since when its file, which no run begins with any more, waits for its host to delete it."""
    copy_url: str | None
    """Where its copy is, that other hosts can read: an absolute path, or an fsspec URL; null where it has none."""


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


class DeviceSample(_Answer):
    """What a GPU did during one stretch of time; null for what it cannot tell."""

    host: str = Field(validation_alias=AliasPath("device", "host_name"))
    device: str = Field(validation_alias=AliasPath("device", "name"))
    """What its worker calls it now."""
    uuid: str | None = Field(validation_alias=AliasPath("device", "uuid"))
    at: datetime
    """Begin of the stretch, on the clock that the metrics of jobs are on; all stretches are of one length."""
    samples: int
    """Readings in it."""
    utilisation: float | None
    """Mean, in percent of the time."""
    memory_bytes: int | None
    """Most that was in use."""
    temperature_c: float | None
    """Highest."""
    power_w: float | None
    """Mean."""


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


class Alive(BaseModel):
    """The process answers."""

    status: Literal["alive"] = "alive"


class Ready(BaseModel):
    """The service can take jobs."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    status: Literal["ready"] = "ready"
    broker: Literal["answers", "silent"]
    """A silent broker makes jobs start later, by up to a worker's tick, and loses none."""
