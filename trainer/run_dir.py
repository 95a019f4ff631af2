"""The run directory: the files of one placement, and the only contract between a supervisor and the trainer.

config.json          what to run, written before the start          (RunConfig)
journal.jsonl        rank 0's append-only events                    (Record, one a line)
error.json           why it failed: the first failing rank          (ErrorReport)
ranks/N.log          standard output and error of local rank N
ranks/N.error.json   what local rank N itself knew of its failure   (ErrorReport)
ranks/N.progress     how far local rank N is                        (Progress)
checkpoints/         the checkpoint files that the journal names
"""

import json
import math
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from trainer.config import TrainConfig
from trainer.errors import Cause, JournalError

RUN_DIR_VARIABLE = "RANKZERO_RUN_DIR"
"""Environment variable that every process of a run carries: how its processes are found and proven dead."""
PARENT_PID_VARIABLE = "RANKZERO_PARENT_PID"
"""Environment variable with the pid whose death must end this process, set for each start by its starter."""
EXIT_FAILED = 1
"""Exit status of a run that failed; error.json says why."""
EXIT_USAGE = 2
"""Exit status of a command line or configuration that cannot be run."""
EXIT_INTERRUPTED = 75
"""Exit status of a run that ended early on SIGINT or SIGTERM (EX_TEMPFAIL: try again later)."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class RunConfig(_Frozen):
    """What one placement runs: the training, and the devices it has."""

    train: TrainConfig
    devices: tuple[str, ...] = Field(min_length=1)
    """Device of each local rank, in rank order and as the rank's own process numbers them: `cuda:0`, `cpu`, `mps`."""
    simulated: bool = False
    """The CUDA devices are simulated: each rank computes on the CPU."""
    resume: Path | None = None
    """Checkpoint of an earlier attempt to continue from; comes before `train.resume`."""
    job_id: int | None = None
    """The service's job, for messages; None outside the service."""
    attempt: int = Field(default=1, ge=1)
    """Which try at the job this is."""


class _Record(_Frozen):
    seq: int = Field(ge=0)
    """Place in the journal, from 0, without a gap."""
    time: AwareDatetime


class Started(_Record):
    """The ranks are up and the first step is next."""

    kind: Literal["started"] = "started"
    world_size: int
    devices: tuple[str, ...]
    batch_per_rank: int
    """Samples of each full global batch that one rank takes."""
    epochs: int
    steps_per_epoch: int
    total_steps: int
    parameters: int
    """Number of trainable parameters."""
    resumed_step: int | None = None
    """Global step of the checkpoint that the run continues from."""


class Metrics(_Record):
    """Values measured after a global step."""

    kind: Literal["metrics"] = "metrics"
    step: int = Field(ge=0)
    """Optimizer steps taken so far, over all attempts."""
    epoch: int = Field(ge=1)
    """The epoch the step belongs to, from 1."""
    values: dict[str, float | None]
    """Value by metric name; null where it is not finite."""
    nonfinite: dict[str, Literal["nan", "inf", "-inf"]] = {}
    """What each null of `values` was."""


class CheckpointSaved(_Record):
    """A checkpoint is committed to disk; from here on it may be resumed from."""

    kind: Literal["checkpoint"] = "checkpoint"
    step: int = Field(ge=0)
    epoch: int = Field(ge=0)
    """Epochs completed at this point."""
    path: str
    """Relative to the run directory."""
    sha256: str
    size_bytes: int
    best: bool
    """Its validation metric is the best so far."""
    values: dict[str, float | None] = {}
    """Validation values at this point, empty inside an epoch."""
    removed: tuple[str, ...] = ()
    """Paths of earlier checkpoints that are deleted once this record is written."""


class Log(_Record):
    """Something the user should know that is no number."""

    kind: Literal["log"] = "log"
    level: Literal["info", "warning", "error"] = "info"
    message: str


class EpochEnd(_Record):
    """An epoch is done and evaluated."""

    kind: Literal["epoch"] = "epoch"
    epoch: int = Field(ge=1)
    step: int
    seconds: float
    """Wall time of the epoch, evaluation included."""
    values: dict[str, float | None]
    nonfinite: dict[str, Literal["nan", "inf", "-inf"]] = {}


class Completed(_Record):
    """The completion record: the only sign of success. Written before the process group is torn down."""

    kind: Literal["completed"] = "completed"
    step: int
    epoch: int
    values: dict[str, float | None]
    """Final validation values."""
    best_checkpoint: str
    """Relative to the run directory."""


Record = Annotated[
    Started | Metrics | CheckpointSaved | Log | EpochEnd | Completed,
    Field(discriminator="kind"),
]
_RECORD: TypeAdapter[Record] = TypeAdapter(Record)


class ErrorReport(_Frozen):
    """Why a run, or one rank of it, failed."""

    cause: Cause
    message: str
    """One line for people."""
    time: AwareDatetime
    rank: int | None = None
    """Global rank that failed first; None where no rank was at fault."""
    exception: str | None = None
    """Qualified name of the exception's type."""
    traceback: str | None = None
    signal: str | None = None
    """Name of the signal that ended the rank, such as SIGKILL."""
    exit_code: int | None = None


class Progress(_Frozen):
    """How far a rank is; rewritten in place at every step."""

    phase: Literal["starting", "training", "evaluating", "saving", "finished"]
    step: int
    time: AwareDatetime


@dataclass(frozen=True)
class RunDir:
    """Paths of one run directory, and the whole-file reads and writes."""

    path: Path

    @property
    def config(self) -> Path:
        return self.path / "config.json"

    @property
    def journal(self) -> Path:
        return self.path / "journal.jsonl"

    @property
    def error(self) -> Path:
        return self.path / "error.json"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def ranks(self) -> Path:
        return self.path / "ranks"

    def log(self, local_rank: int) -> Path:
        return self.ranks / f"{local_rank}.log"

    def rank_error(self, local_rank: int) -> Path:
        return self.ranks / f"{local_rank}.error.json"

    def progress(self, local_rank: int) -> Path:
        return self.ranks / f"{local_rank}.progress"

    def create(self, config: RunConfig) -> None:
        """Make the folders and write config.json."""
        for folder in (self.ranks, self.checkpoints):
            folder.mkdir(parents=True, exist_ok=True)
        write_atomic(self.config, config.model_dump_json(indent=2).encode())

    def read_config(self) -> RunConfig:
        return RunConfig.model_validate_json(self.config.read_bytes())

    def read_error(self) -> ErrorReport | None:
        return _read_report(self.error)

    def read_rank_error(self, local_rank: int) -> ErrorReport | None:
        return _read_report(self.rank_error(local_rank))

    def read_progress(self, local_rank: int) -> Progress | None:
        """Return how far the rank is, or None where it has not said so yet."""
        try:
            return Progress.model_validate_json(self.progress(local_rank).read_bytes())
        except (FileNotFoundError, ValidationError):
            return None  # not there yet, or read in the middle of a rewrite

    def completed(self) -> Completed | None:
        """Return the completion record, or None where the run has not succeeded."""
        last = None
        for record in read_records(self.journal):
            last = record
        return last if isinstance(last, Completed) else None

    def last_checkpoint(self) -> CheckpointSaved | None:
        """Return the newest checkpoint that the journal names: the one to continue from."""
        newest = None
        for record in read_records(self.journal):
            if isinstance(record, CheckpointSaved):
                newest = record
        return newest


def write_atomic(path: Path, content: bytes) -> None:
    """Replace a file so that a reader, or a crash at any instant, sees the old content or the new, never a mix."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        fsync_folder(path.parent)
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


def fsync_folder(folder: Path) -> None:
    """Make a rename or a new name in `folder` survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def finite_values(values: dict[str, float]) -> tuple[dict[str, float | None], dict[str, Any]]:
    """Split metric values into strict-JSON values and the kinds of those that are not finite."""
    kinds = {name: _kind(value) for name, value in values.items() if not math.isfinite(value)}
    return {name: None if name in kinds else value for name, value in values.items()}, kinds


class JournalWriter:
    """Appends records to a journal; one writer at a time, rank 0 of the placement.

    Opening an existing journal continues it: a torn last line (a power cut in the middle of a write) is cut off.
    """

    def __init__(self, path: Path) -> None:
        records, end = read_journal(path, 0)
        self._seq = len(records)
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.ftruncate(self._file, end)

    def append(self, kind: type[_Record], *, durable: bool = False, **fields: Any) -> None:
        """Append one record; `durable` waits until it is on disk. Raises OSError where it cannot be written whole."""
        record = kind(seq=self._seq, time=datetime.now(UTC), **fields)
        line = record.model_dump_json().encode() + b"\n"
        before = os.fstat(self._file).st_size
        written = os.write(self._file, line)
        if written != len(line):  # a full disk can take a part: the journal must not keep half a line before the next
            os.ftruncate(self._file, before)
            raise OSError(28, os.strerror(28), "journal.jsonl")
        if durable:
            os.fsync(self._file)
        self._seq += 1

    def close(self) -> None:
        os.close(self._file)


def read_journal(path: Path, offset: int = 0, *, limit: int | None = None) -> tuple[list[Record], int]:
    """Return the complete records from byte `offset` on (at most `limit`), and the offset after the last of them.

    A line without its newline is still being written: it stays for the next call. A missing file holds no records.
    Raises JournalError for a complete line that is no record.
    """
    records: list[Record] = []
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return records, offset
    with file:
        file.seek(offset)
        for line in file:
            if not line.endswith(b"\n") or (limit is not None and len(records) >= limit):
                break
            try:
                records.append(_RECORD.validate_json(line))
            except ValidationError as error:
                raise JournalError(f"{path}: the line at byte {offset} is no journal record: {error}") from error
            offset += len(line)
    return records, offset


def read_records(path: Path) -> Iterator[Record]:
    """Yield every complete record of a journal."""
    records, _ = read_journal(path)
    yield from records


def error_report(error: BaseException, *, cause: Cause, rank: int | None, traceback: str | None) -> ErrorReport:
    """Describe an exception for an error file."""
    kind = type(error)
    return ErrorReport(
        cause=cause,
        message=f"{kind.__name__}: {error}".strip().splitlines()[0][:2000],
        time=datetime.now(UTC),
        rank=rank,
        exception=f"{kind.__module__}.{kind.__qualname__}",
        traceback=traceback,
    )


def _read_report(path: Path) -> ErrorReport | None:
    try:
        return ErrorReport.model_validate(json.loads(path.read_bytes()))
    except FileNotFoundError:
        return None


def _kind(value: float) -> str:
    if math.isnan(value):
        return "nan"
    return "inf" if value > 0 else "-inf"
