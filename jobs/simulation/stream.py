"""A stream: the jobs that a simulation submits one after another, and how it is written to a file and read again."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from jobs.device_count import DeviceCount
from jobs.planner.request import Request
from trainer.devices import parse_device
from trainer.errors import DeviceError


class InvalidStreamError(ValueError):
    """A recorded stream that is none; the message names the file, the line and the field."""


class StreamJob(BaseModel):
    """One job of a stream: what it asks for, how long it runs, and what is known of that beforehand. All in seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)

    submitted_s: float = Field(ge=0)
    """When it is submitted, since the begin of the stream."""
    runs_s: float = Field(gt=0)
    """How long it has its devices, over all attempts; the planner is never told."""
    request: Request
    """What it asks for. At its time limit, which is known from the start, it is ended."""
    priority: int = Field(default=50, ge=0, le=100)
    """Higher starts first."""
    user: str | None = None
    """Whom it is for."""
    labels: Mapping[str, str] = {}
    """By key."""
    foretold_s: float | None = Field(default=None, gt=0)
    """How long its own measured pace says that it runs, known once it has started; None where it reports no pace."""

    @field_validator("request")
    @classmethod
    def _is_one_that_the_service_makes(cls, request: Request) -> Request:
        """A device list in its canonical form, and as many devices as it says."""
        device = request.device
        if isinstance(device, DeviceCount):
            wanted = device.count
        else:
            try:
                device = parse_device(device)
            except DeviceError as error:
                raise ValueError(str(error)) from error
            wanted = request.per_node if device == "cpu" else device.count(",") + 1
        if wanted != request.per_node:
            raise ValueError(f"per_node is {request.per_node}, and device asks for {wanted}")
        return request if device == request.device else request.model_copy(update={"device": device})

    @property
    def limit_s(self) -> float | None:
        """Its time limit."""
        return self.request.time_limit_s

    @property
    def real_s(self) -> float:
        """How long it has its devices: until it is done, or its limit has come."""
        return self.runs_s if self.limit_s is None else min(self.runs_s, self.limit_s)


def read(path: Path) -> list[StreamJob]:
    """Return the jobs of a file with a JSON object on each line, in order of submission.

    Raises InvalidStreamError for anything else, and OSError where the file cannot be read.
    """
    with path.open(encoding="utf-8", errors="replace") as lines:
        jobs = [_parse(line, f"{path}, line {number}") for number, line in enumerate(lines, start=1) if line.strip()]
    if not jobs:
        raise InvalidStreamError(
            f"{path}: has no job; each line is to be a JSON object with submitted_s, runs_s, request"
        )
    return in_order(jobs)


def write(path: Path, jobs: Iterable[StreamJob]) -> None:
    """Write jobs for `read`, one on each line, without the fields that say what they say by default."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(job.model_dump_json(exclude_defaults=True) + "\n" for job in jobs)


def in_order(jobs: Sequence[StreamJob]) -> list[StreamJob]:
    """Return jobs in order of submission; those of one moment stay as they are."""
    return sorted(jobs, key=lambda job: job.submitted_s)


def _parse(line: str, where: str) -> StreamJob:
    try:
        return StreamJob.model_validate_json(line)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise InvalidStreamError(
            f"{where}: {f'{field}: ' if field else ''}{first['msg'].removeprefix('Value error, ')}"
        ) from error
