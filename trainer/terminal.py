"""A run as people watch it: a progress bar on a terminal, a line for each epoch elsewhere, and last words."""

import errno
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import NoReturn

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text

from trainer.journal import CheckpointSaved, EpochEnd, Log, Metrics, Record, Started, read_journal
from trainer.run_dir import RunDir

_INTERVAL_S = 0.2
_BAR_WIDTH = 20
"""Characters: half of rich's own, so that 80 columns have room for some metrics."""


def say(text: str) -> None:
    """Write lines to standard error, where anybody still listens: its disk may be full, or its pipe's reader gone."""
    with suppress(OSError, ValueError):
        sys.stderr.write(text + "\n")
        sys.stderr.flush()


class RunDisplay:
    """Follows the journal of a run directory and shows it on standard error.

    A display that fails (a log on a full disk, the reader of a pipe gone, a damaged journal) turns itself off: what
    nobody can see is no reason to end a run.
    """

    def __init__(self, run_dir: RunDir) -> None:
        self._run_dir = run_dir
        self._is_on = True
        self._console = _Console(file=sys.stderr, soft_wrap=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=_BAR_WIDTH, table_column=Column(no_wrap=True)),
            MofNCompleteColumn(table_column=Column(no_wrap=True)),
            _MetricsColumn(),
            TimeRemainingColumn(table_column=Column(no_wrap=True)),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._task: TaskID = self._progress.add_task("starting", total=None, metrics="")
        self._offset = run_dir.journal.stat().st_size if run_dir.journal.exists() else 0
        self._epochs: int | None = 0
        self._looked_s = 0.0

    def __enter__(self) -> "RunDisplay":
        self._try(self._progress.start)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._try(self._look)
        self._try(self._progress.stop)

    def update(self) -> None:
        """Show what has been journaled since the last call; looks five times a second at most."""
        if (now_s := time.monotonic()) - self._looked_s < _INTERVAL_S:
            return
        self._looked_s = now_s
        self._try(self._look)

    def _try(self, show: Callable[[], None]) -> None:
        if not self._is_on:
            return
        try:
            show()
        except Exception as error:  # noqa: BLE001  (whatever goes wrong with showing a run, the run goes on)
            self._is_on = False
            with suppress(OSError, ValueError):
                self._progress.stop()  # gives standard output and error back to whom they belonged
            say(f"the run is no longer shown here, and goes on ({type(error).__name__}: {error})")

    def _look(self) -> None:
        records, self._offset = read_journal(self._run_dir.journal, self._offset)
        for record in records:
            self._show(record)
        if progress := self._run_dir.read_progress(0):
            self._progress.update(self._task, completed=progress.step)

    def _show(self, record: Record) -> None:
        match record:
            case Started():
                self._epochs = record.epochs
                devices = ", ".join(record.devices)
                ranks = "1 rank" if record.world_size == 1 else f"{record.world_size} ranks"
                self._console.print(f"{ranks} on {devices}{_work(record)}", highlight=False)
                self._progress.update(self._task, description="training", total=record.total_steps)
            case Metrics():
                shown = {name.removeprefix("train/"): value for name, value in record.values.items()}
                text = "  ".join(f"{name} {value:.4g}" for name, value in shown.items() if value is not None)
                self._progress.update(self._task, completed=record.step, metrics=text)
            case EpochEnd():
                text = "  ".join(f"{name} {value:.4f}" for name, value in record.values.items() if value is not None)
                self._console.print(
                    f"epoch {record.epoch}/{self._epochs}  {text}  {record.seconds:.1f} s",
                    highlight=False,
                    markup=False,
                )
            case Log():
                self._console.print(f"{record.level}: {record.message}", highlight=False, markup=False)
            case CheckpointSaved():
                self._progress.update(self._task, description="training")
            case _:
                pass


def _work(started: Started) -> str:
    """What there is to do, as far as the run knows: a script alone knows how much it trains."""
    if started.batch_per_rank is None:
        return ""
    each = f" ({started.batch_per_rank} each)" if started.world_size > 1 else ""
    batch = started.batch or started.batch_per_rank * started.world_size
    of = f" of {started.accumulate}" if started.accumulate > 1 else ""
    return f"; batch {batch}{each}, {started.total_steps} steps{of}"


class _MetricsColumn(ProgressColumn):
    """The metrics: the only column that is cut where the terminal is too narrow for all."""

    def render(self, task: Task) -> Text:
        return Text(task.fields["metrics"], no_wrap=True, overflow="ellipsis")


class _Console(Console):
    def on_broken_pipe(self) -> NoReturn:
        """Leave the error to the display; rich itself would end the process, and the run with it."""
        raise BrokenPipeError(errno.EPIPE, "nobody reads standard error any more")
