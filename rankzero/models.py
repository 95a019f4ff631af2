"""What the service answers with about jobs, as the client returns it. Fields of a newer service are kept."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict

TERMINAL = frozenset({"succeeded", "failed", "cancelled"})


class Answer(BaseModel):
    """Base of all that the service answers with."""

    model_config = ConfigDict(frozen=True, extra="allow", use_attribute_docstrings=True)


class Progress(Answer):
    """How far the newest attempt is."""

    step: int | None = None
    total_steps: int | None = None
    epoch: int | None = None
    epochs: int | None = None
    batch: int | None = None
    """Samples of each full global batch: with `batch` -1 as many as were found to fit."""
    batch_per_rank: int | None = None
    """Samples of it that one rank takes."""
    accumulate: int | None = None
    """Global batches that one optimizer step takes."""
    values: Mapping[str, float | None] = {}
    """The latest value of each metric; None where it is not finite."""


class Failure(Answer):
    """Why an attempt failed."""

    cause: str
    message: str
    rank: int | None = None
    traceback: str | None = None
    log_tail: str | None = None
    """The last lines that the rank printed, or its launcher where no rank was at fault; empty where it had
    printed nothing."""


class Holder(Answer):
    """A device that a job waits for, and the job that has it or comes before it."""

    host: str
    device: str
    job_id: int


class Job(Answer):
    """A job: what was asked for, and where it is."""

    id: int
    name: str
    state: str
    """`queued`, `starting`, `running`, `paused`, `succeeded`, `failed` or `cancelled`."""
    intent: str
    attempt: int
    priority: int
    labels: Mapping[str, str]
    spec: Mapping[str, Any]
    world_size: int | None
    user: str | None = None
    parent_id: int | None = None
    """The job that it was cloned from, or else whose checkpoint it starts from."""
    parent_checkpoint_id: int | None = None
    """The checkpoint that it starts from."""
    reason: str | None
    """What a queued job waits for."""
    position: int | None = None
    """Its place in the line, from 1."""
    predicted_start: datetime | None = None
    """When it will start, as far as that can be foretold."""
    waits_for: tuple[Holder, ...] | None = None
    """Who is in its way, the first few."""
    not_before: datetime | None = None
    """Until when it rests after an attempt was lost."""
    failure: Failure | None
    """Of the attempt that failed last, whatever has become of the job since."""
    progress: Progress | None
    created_at: datetime
    queued_at: datetime | None = None
    """When it last became queued."""
    started_at: datetime | None
    """When its first attempt began to train."""
    finished_at: datetime | None
    warnings: tuple[str, ...] = ()
    """What its submitter should know; only on the answer to a submission."""

    @property
    def is_over(self) -> bool:
        """Whether its state is final."""
        return self.state in TERMINAL

    @property
    def device(self) -> str:
        """Its devices as asked for, in words."""
        device = self.spec["device"]
        if isinstance(device, Mapping):
            return ", ".join(f"{key} {value}" for key, value in device.items() if value is not None)
        return str(device)


class Device(Answer):
    """A device."""

    name: str
    """`cuda:N` as its host's worker numbers it, `mps`, or `cpu:N` for a slot."""
    driver_index: int | None = None
    """The number by which the driver lists a GPU, as `nvidia-smi` prints it."""
    uuid: str | None = None
    """The driver's name for the physical GPU."""
    kind: str
    model: str | None
    simulated: bool


class Placement(Answer):
    """One host's share of an attempt."""

    node_rank: int
    host: str
    devices: tuple[Device, ...]
    run_dir: str
    claimed_at: datetime | None
    """When its supervisor took it."""


class Attempt(Answer):
    """One try at running a job."""

    number: int
    outcome: str | None
    """None until it ends."""
    failure: Failure | None
    stop_message: str | None = None
    """Why the service told it to stop, if it did: `preempted by job 18`."""
    world_size: int
    resumed_step: int | None
    resume_checkpoint_id: int | None = None
    """The checkpoint it begins with, its own job's or that of another."""
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    placements: tuple[Placement, ...]


class Metric(Answer):
    """One value of one metric."""

    name: str
    step: int
    epoch: int
    attempt: int
    at: datetime
    value: float | None
    """None where it is not finite; `kind` says what it was."""
    kind: str | None


class MetricName(Answer):
    """What the whole series of one metric comes to."""

    name: str
    count: int
    """Steps that have a value."""
    first_step: int
    last_step: int
    last_value: float | None
    """None where it is not finite; `last_kind` says what it was."""
    last_kind: str | None


class Checkpoint(Answer):
    """A committed checkpoint file."""

    id: int
    attempt: int
    host_name: str
    path: str
    """Absolute on that host."""
    step: int
    epoch: int
    sha256: str
    size_bytes: int
    best: bool
    values: Mapping[str, float | None]
    created_at: datetime
    removed_at: datetime | None = None
    """Since when no run begins with it any more."""
    doomed_at: datetime | None = None
    """Since when its file waits for its host to delete it."""
    copy_url: str | None = None
    """Where its copy is, that other hosts can read; None where it has none."""


class PrunedCheckpoints(Answer):
    """What became of a job's checkpoints."""

    removed: tuple[Checkpoint, ...]
    """Those that are gone now, or as soon as their host gets to it."""
    kept: tuple[Checkpoint, ...]


class Event(Answer):
    """Something that happened to a job."""

    id: int
    attempt: int
    at: datetime
    kind: str
    from_state: str | None
    to_state: str | None
    detail: Mapping[str, Any]


class LogChunk(Answer):
    """A piece of one rank's output."""

    id: int
    attempt: int
    rank: int
    offset: int
    """Byte of the rank's log at which it begins."""
    text: str
    at: datetime


class DeviceSample(Answer):
    """What a GPU did during one stretch of time; None for what it cannot tell."""

    host: str
    device: str
    uuid: str | None
    at: datetime
    """Begin of the stretch, on the clock of the metrics."""
    samples: int
    utilisation: float | None
    """Mean, in percent of the time."""
    memory_bytes: int | None
    """Most that was in use."""
    temperature_c: float | None
    """Highest."""
    power_w: float | None
    """Mean."""
