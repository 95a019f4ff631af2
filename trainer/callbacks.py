"""Callbacks: what a script wants called with the events of its run, as rank 0 journals them."""

import inspect
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from trainer.errors import ConfigError
from trainer.journal import CheckpointSaved, Completed, EpochEnd, Log, Metrics, Record, Started
from trainer.names import closest
from trainer.reporting import Journal


class Callback:
    """Called with each record that rank 0 writes into the journal; override what interests you.

    Any callable that takes a record will do as a callback; this one sorts the records by kind. It is called in rank 0,
    a process of its own (but under torchrun, where rank 0 is the script): what it remembers stays there, what it
    prints is in `ranks/0.log`, and the object in the calling script never changes. The other ranks wait for it at the
    next step, so it had better be quick. What it raises ends the run with that error.
    """

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Raise ConfigError for a method that no event calls, by its name: it would never fire, and nobody be told."""
        super().__init_subclass__(**keywords)
        known = [name for name in vars(Callback) if name.startswith("on_")]
        for name, value in vars(cls).items():
            if name.startswith("on_") and inspect.isroutine(value) and name not in known:
                near = closest(name, known)
                raise ConfigError(
                    f"{cls.__qualname__}.{name} would never be called: there is {', '.join(known)}"
                    f"{f'; did you mean {near}?' if near else ''}"
                )

    def __call__(self, record: Record) -> None:
        match record:
            case Started():
                self.on_started(record)
            case Metrics():
                self.on_metrics(record)
            case CheckpointSaved():
                self.on_checkpoint(record)
            case Log():
                self.on_log(record)
            case EpochEnd():
                self.on_epoch_end(record)
            case Completed():
                self.on_completed(record)

    def on_started(self, record: Started) -> None:
        """All ranks are up, and the first step is next."""

    def on_metrics(self, record: Metrics) -> None:
        """Values were measured: each `log_every` steps in training, and at each validation."""

    def on_checkpoint(self, record: CheckpointSaved) -> None:
        """A checkpoint is on disk; its path is relative to the run directory."""

    def on_log(self, record: Log) -> None:
        """There is something that the user should know, such as a warning about the data."""

    def on_epoch_end(self, record: EpochEnd) -> None:
        """An epoch is done, evaluated and saved."""

    def on_completed(self, record: Completed) -> None:
        """The run has succeeded. What is raised here cannot change that any more, and is only printed."""


def observed(journal: Journal, callbacks: Sequence[Callable[[Record], None]]) -> Journal:
    """Return a journal that calls each callback with a record once that is written: on rank 0, which alone writes."""
    return _ObservedJournal(journal, callbacks) if callbacks else journal


class _ObservedJournal:
    def __init__(self, journal: Journal, callbacks: Sequence[Callable[[Record], None]]) -> None:
        self._journal, self._callbacks = journal, callbacks

    def append(self, kind: Any, *, durable: bool = False, **fields: Any) -> Record | None:
        record = self._journal.append(kind, durable=durable, **fields)
        if record is not None:
            for callback in self._callbacks:
                _call(callback, record)
        return record


def _call(callback: Callable[[Record], None], record: Record) -> None:
    try:
        callback(record)
    except Exception:
        if not isinstance(record, Completed):  # a run that is complete cannot fail any more
            raise
        traceback.print_exc()
