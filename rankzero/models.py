"""What the service answers with, as the client returns it. Fields of a newer service are kept, not refused."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict

TERMINAL = frozenset({"succeeded", "failed", "cancelled"})


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow", use_attribute_docstrings=True)


class Progress(_Answer):
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


class Failure(_Answer):
    """Why an attempt failed."""

    cause: str
    message: str
    rank: int | None = None
    traceback: str | None = None


class Job(_Answer):
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
    reason: str | None
    """What a queued job waits for."""
    failure: Failure | None
    progress: Progress | None
    created_at: datetime
    started_at: datetime | None
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


class Device(_Answer):
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


class Placement(_Answer):
    """One host's share of an attempt."""

    node_rank: int
    host: str
    devices: tuple[Device, ...]
    run_dir: str
    claimed_at: datetime | None
    """When its supervisor took it."""


class Attempt(_Answer):
    """One try at running a job."""

    number: int
    outcome: str | None
    """None until it ends."""
    failure: Failure | None
    world_size: int
    resumed_step: int | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    placements: tuple[Placement, ...]


class Metric(_Answer):
    """One value of one metric."""

    name: str
    step: int
    epoch: int
    attempt: int
    at: datetime
    value: float | None
    """None where it is not finite; `kind` says what it was."""
    kind: str | None


class Checkpoint(_Answer):
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


class Event(_Answer):
    """Something that happened to a job."""

    id: int
    attempt: int
    at: datetime
    kind: str
    from_state: str | None
    to_state: str | None
    detail: Mapping[str, Any]


class LogChunk(_Answer):
    """A piece of one rank's output."""

    id: int
    attempt: int
    rank: int
    offset: int
    text: str
    at: datetime


class HostDevice(Device):
    """A device of a host; `held_by` names the job and the attempt that hold it."""

    held_by: Mapping[str, int] | None


class Host(_Answer):
    """A machine with a worker."""

    name: str
    alive: bool
    heartbeat_at: datetime
    devices: tuple[HostDevice, ...]
