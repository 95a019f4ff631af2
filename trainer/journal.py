"""The journal: rank 0's append-only events, one JSON object a line, their writer and their readers."""

import errno
import math
import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal, NamedTuple, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from trainer.errors import JournalError
from trainer.turns import Turns

_PORTION = 500
"""Records held at a time by who reads all of a journal."""
_BLOCK_BYTES = 64 * 1024
_COMPLETED = b'"kind":"completed"'
"""In the line of a completion record, and of no other: inside a text of another, the quotes would be escaped."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    seq: int = Field(ge=0)
    """Place in the journal, from 0, without a gap."""
    time: AwareDatetime


class Started(_Record):
    """The ranks are up and the first step is next."""

    kind: Literal["started"] = "started"
    world_size: int
    devices: tuple[str, ...]
    batch: int | None = None
    """Samples of each full global batch; null in journals from before it was told."""
    batch_per_rank: int | None = None
    """Samples of each full global batch that one rank takes; here as below, null for a script, which alone knows."""
    accumulate: int = 1
    """Global batches that one optimizer step takes."""
    micro_batches: int = 1
    """Parts that each global batch is computed in, since the whole did not fit into a device's memory."""
    epochs: int | None = None
    steps_per_epoch: int | None = None
    total_steps: int | None = None
    """Optimizer steps that the run ends after."""
    parameters: int | None = None
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
    """Relative to the run directory; absolute where a script has saved it elsewhere."""
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
    by_class: dict[str, dict[str, float | None]] = {}
    """Figures of each class, as the recipe's evaluation has them."""


class Completed(_Record):
    """The completion record: the only sign of success. Written before the process group is torn down."""

    kind: Literal["completed"] = "completed"
    step: int
    epoch: int
    values: dict[str, float | None]
    """Final validation values."""
    best_checkpoint: str | None
    """As its own record names it; null for a script that has told of none."""


Record = Annotated[
    Started | Metrics | CheckpointSaved | Log | EpochEnd | Completed,
    Field(discriminator="kind"),
]
_RECORD: TypeAdapter[Record] = TypeAdapter(Record)
Kind = TypeVar("Kind", bound=_Record)


class _End(NamedTuple):
    """Where the next record goes: one value, so that no exception out of a signal handler leaves half of it."""

    seq: int = 0
    byte: int = 0
    is_complete: bool = False
    """The last record is the completion record: none goes behind it."""


class _Opened(NamedTuple):
    """The journal as one process has it: one value, so that no thread pairs a file with another process's turns."""

    file: int
    turns: Turns


class JournalWriter:
    """Appends records to a journal, of which there is one for each run: that of the placement with rank 0.

    Several may write at once, in threads, processes and signal handlers of rank 0: the training, and what the user's
    code in it reports. Each append has the file to itself and continues where the others have got to. A torn last line
    (a power cut in the middle of a write, a writer that was killed) is cut off by the next append. Raises JournalError
    where a line of an existing journal is damaged.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._opened: dict[int, _Opened] = {}
        """By process: a fork has those of its parents, and a lock on a file that they share keeps none of them out."""
        self._opened_here()
        self._end = _End()
        for portion, after in _portions(path):
            self._end = _End(self._end.seq + len(portion), after, isinstance(portion[-1], Completed))

    def append(self, kind: type[Kind], *, durable: bool = False, **fields: Any) -> Kind | None:
        """Append one record and return it; `durable` waits until it is on disk.

        In a signal handler that has interrupted another append, the record is written once that is through, and None
        returned. Raises OSError where it cannot be written whole, and JournalError where the run is complete.
        """
        file, turns = self._opened_here()
        record = kind(seq=0, time=datetime.now(UTC), **fields)
        if turns.mine:
            turns.leave(partial(self._append_late, record, file, turns, durable=durable))
            return None
        try:
            return self._append(record, file, turns, durable=durable)
        finally:
            turns.do_what_is_left()

    def close(self) -> None:
        os.close(self._opened_here().file)

    def _opened_here(self) -> _Opened:
        """Return the journal as this process has it. After a fork, several threads and handlers may be the first."""
        process = os.getpid()
        opened = self._opened.get(process)
        if opened is not None:
            return opened
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        opened = self._opened.setdefault(process, _Opened(file, Turns.at(file)))
        if opened.file != file:  # another was quicker; waiting for it instead, a handler would wait for ever
            os.close(file)
        return opened

    def _append_late(self, record: _Record, file: int, turns: Turns, *, durable: bool) -> None:
        with suppress(JournalError):  # it was the completion record that the handler interrupted
            self._append(record, file, turns, durable=durable)

    def _append(self, record: Kind, file: int, turns: Turns, *, durable: bool) -> Kind:
        with turns.taken(file):
            end = self._end = self._caught_up(file)
            if end.is_complete:
                raise JournalError(f"{self._path}: the run is complete, and its journal takes no more records")
            record = record.model_copy(update={"seq": end.seq, "time": datetime.now(UTC)})
            line = record.model_dump_json().encode() + b"\n"
            written = os.write(file, line)
            if written != len(line):  # a full disk can take a part: the journal must not keep half a line
                os.ftruncate(file, end.byte)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "journal.jsonl")
            self._end = _End(end.seq + 1, end.byte + written, isinstance(record, Completed))
        if durable:
            os.fsync(file)
        return record

    def _caught_up(self, file: int) -> _End:
        """Return the end of what others have appended, and cut off a line that one of them was killed in."""
        end = self._end
        added = os.fstat(file).st_size - end.byte
        if added <= 0:
            return end
        whole, newline, torn = os.pread(file, added, end.byte).rpartition(b"\n")
        if newline:
            last = whole.rpartition(b"\n")[2]
            end = _End(end.seq + whole.count(b"\n") + 1, end.byte + len(whole) + 1, _COMPLETED in last)
        if torn:
            os.ftruncate(file, end.byte)
        return end


def read_journal(path: Path, offset: int = 0, *, limit: int | None = None) -> tuple[list[Record], int]:
    """Return the complete records from byte `offset` on (at most `limit`), and the offset after the last of them.

    A line without its newline is still being written: it stays for the next call. A missing file holds no records.
    A complete line that is no record ends the list; raises JournalError for it where it is the first, so what lies
    before the damage is read by one call and the damage reported by the next.
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
                records.append(_record(line, path, offset))
            except JournalError:
                if not records:
                    raise
                break
            offset += len(line)
    return records, offset


def read_records(path: Path) -> Iterator[Record]:
    """Yield every complete record of a journal, holding few at a time. Raises JournalError at a line that is none."""
    for portion, _ in _portions(path):
        yield from portion


def read_backwards(path: Path) -> Iterator[Record]:
    """Yield the complete records from the last to the first: who looks for the newest reads the end only.

    Raises JournalError on reaching a line that is no record.
    """
    with suppress(FileNotFoundError), path.open("rb") as file:
        for offset, line in _lines_backwards(file):
            yield _record(line, path, offset)


def _lines_backwards(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield each complete line and its offset, from the last to the first."""
    begin = file.seek(0, os.SEEK_END)
    rest, torn = b"", True  # the end of a line that begins further up; what follows the last newline is torn
    while begin > 0:
        size = min(_BLOCK_BYTES, begin)
        begin = file.seek(begin - size)
        rest, *lines = (file.read(size) + rest).split(b"\n")
        if torn and lines:
            lines.pop()
            torn = False
        offset = begin + len(rest) + 1 + sum(len(line) + 1 for line in lines)
        for line in reversed(lines):
            offset -= len(line) + 1
            yield offset, line
    if not torn:
        yield 0, rest


def _portions(path: Path) -> Iterator[tuple[list[Record], int]]:
    """Yield a few records at a time, and the offset after them."""
    offset = 0
    while True:
        records, offset = read_journal(path, offset, limit=_PORTION)
        if not records:
            return
        yield records, offset


def _record(line: bytes, path: Path, offset: int) -> Record:
    try:
        return _RECORD.validate_json(line)
    except ValidationError as error:
        raise JournalError(f"{path}: the line at byte {offset} is no journal record: {error}") from error


def finite_values(values: dict[str, float]) -> tuple[dict[str, float | None], dict[str, Any]]:
    """Split metric values into strict-JSON values and the kinds of those that are not finite."""
    kinds = {name: _kind(value) for name, value in values.items() if not math.isfinite(value)}
    return {name: None if name in kinds else value for name, value in values.items()}, kinds


def _kind(value: float) -> str:
    if math.isnan(value):
        return "nan"
    return "inf" if value > 0 else "-inf"
