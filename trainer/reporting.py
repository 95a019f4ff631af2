"""What a rank tells the world: its progress file, and rank 0's journal."""

import os
import time
import unicodedata
from datetime import UTC, datetime
from typing import Any, Literal, Protocol, get_args

from trainer.journal import JournalWriter, Log, Record, finite_values
from trainer.run_dir import Progress, RunDir

Phase = Literal["starting", "compiling", "training", "evaluating", "waiting", "saving", "finished", "stopped"]
assert get_args(Phase) == get_args(Progress.model_fields["phase"].annotation)

METRIC_NAME = "1 to 255 characters of one line: no line breaks or other control characters, no lone surrogates"
"""What `is_metric_name` asks for, in words."""
_LONGEST_NAME = 255
_UNPRINTABLE = ("Cc", "Cs", "Zl", "Zp")
"""Unicode's categories: control characters, surrogates, and what separates lines and paragraphs."""
_INTERVAL_S = 0.2
_WIDTH = 128
"""Bytes of a progress file: always the same, so that one write replaces all of it and no reader sees a mix."""


class ProgressFile:
    """How far this rank is, rewritten in place: at each step and new phase, else five times a second at most.

    A write costs four microseconds, and who looks for the rank that hangs has no use for the step before the last.
    """

    def __init__(self, run_dir: RunDir, *, local_rank: int) -> None:
        self._file = os.open(run_dir.progress(local_rank), os.O_WRONLY | os.O_CREAT, 0o644)
        self._phase: Phase | None = None
        self._step = -1
        self._kept: tuple[Phase, int] | None = None
        self._written_at = 0.0

    def alive(self) -> None:
        """Say that the rank is still at work in the phase and at the step that it wrote last."""
        if self._phase is not None:
            self.write(self._phase, self._step)

    def keep(self, phase: Phase, step: int, *, through: int) -> None:
        """Write a phase that "training" does not replace before more than `through` steps are taken.

        A rank that runs ahead of its device has issued steps, and counted them, that the device has yet to come to.
        """
        self._kept = (phase, through)
        self.write(phase, step)

    def write(self, phase: Phase, step: int, *, present: int | None = None) -> None:
        """Say that the rank is alive, in `phase`, with `step` optimizer steps taken, `present` ranks there."""
        if phase == "training" and self._kept is not None and step <= self._kept[1]:
            phase = self._kept[0]
        now = time.monotonic()
        if (phase, step) == (self._phase, self._step) and now - self._written_at < _INTERVAL_S:
            return
        line = Progress(phase=phase, step=step, time=datetime.now(UTC), present=present).model_dump_json()
        os.pwrite(self._file, line.ljust(_WIDTH - 1).encode() + b"\n", 0)
        self._phase, self._step, self._written_at = phase, step, now


class Journal(Protocol):
    """Where the events of a run go."""

    def append(self, kind: Any, *, durable: bool = False, **fields: Any) -> Record | None:
        """Append one record of a kind from trainer.journal, and return it where it has been written."""


class SilentJournal:
    """The journal of every rank but rank 0."""

    def append(self, kind: Any, *, durable: bool = False, **fields: Any) -> None:
        """Drop the record: rank 0 writes the same."""


def open_journal(run_dir: RunDir, *, rank: int) -> Journal:
    """Return the run's journal on rank 0, and one that drops everything elsewhere."""
    return JournalWriter(run_dir.journal) if rank == 0 else SilentJournal()


def warn(journal: Journal, message: str) -> None:
    """Tell the user something that does not stop the run."""
    journal.append(Log, level="warning", message=message)


def is_metric_name(name: str) -> bool:
    """Whether a metric can be called so: a terminal shows it in a line, and UTF-8 can hold it."""
    return 0 < len(name) <= _LONGEST_NAME and not any(unicodedata.category(each) in _UNPRINTABLE for each in name)


def metric_fields(values: dict[str, float]) -> dict[str, Any]:
    """Return the fields `values` and `nonfinite` of a record."""
    finite, nonfinite = finite_values(values)
    return {"values": finite, "nonfinite": nonfinite}
