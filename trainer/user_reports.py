"""The reports of the user's own code: what it tells of its training, written into the journal of the run it is in.

The package rankzero hands these on, so this loads no torch: a script that wants none shall not wait for it.
"""

import math
import operator
import os
from collections.abc import Mapping
from functools import lru_cache
from numbers import Real
from pathlib import Path

from trainer.config import SCRIPT
from trainer.durable_files import fsync_path, sha256_of
from trainer.error_report import encodable
from trainer.errors import JournalError
from trainer.journal import CheckpointSaved, JournalWriter, Metrics, finite_values
from trainer.reporting import METRIC_NAME, ProgressFile, is_metric_name, metric_fields
from trainer.run_dir import RUN_DIR_VARIABLE, RunDir

_MOST_STEPS = 2**63
_MOST_EPOCHS = 2**31


class Reports:
    """What one process below rank 0 reports to a run."""

    def __init__(self, run_dir: RunDir) -> None:
        self._run_dir = run_dir
        self._journal = JournalWriter(run_dir.journal)
        self._is_script = run_dir.read_config().train.recipe == SCRIPT
        # Another recipe's training writes this itself, in steps of its own.
        self._progress = ProgressFile(run_dir, local_rank=0) if self._is_script else None

    @classmethod
    def of_this_run(cls) -> "Reports":
        """Return those of the run that this process is in."""
        return _reports(os.environ[RUN_DIR_VARIABLE])

    def report(self, values: Mapping[str, object], *, step: object, epoch: object = 1) -> None:
        """Write values measured after `step` optimizer steps.

        Raises TypeError and ValueError, naming the metric, for what is no number or no name.
        """
        at = _whole(step, "step", most=_MOST_STEPS)
        in_epoch = _whole(epoch, "epoch", least=1, most=_MOST_EPOCHS)
        numbers = metric_values(values)
        is_taken = not numbers or self._append(Metrics, step=at, epoch=in_epoch, **metric_fields(numbers))
        if self._progress is not None and is_taken:
            self._progress.write("training", at)

    def checkpoint(
        self,
        path: str | os.PathLike[str],
        values: Mapping[str, object],
        *,
        step: object,
        epoch: object = 0,
        best: bool = False,
    ) -> None:
        """Tell of a file that the program has saved, after it is on disk.

        Raises TypeError and ValueError as `report` does, OSError for a file that is not there, and RuntimeError where
        it is not a script that runs: a training of ours saves, and resumes from, checkpoints of its own.
        """
        at = _whole(step, "step", most=_MOST_STEPS)
        completed = _whole(epoch, "epoch", most=_MOST_EPOCHS)
        numbers = finite_values(metric_values(values))[0]
        if not self._is_script:
            raise RuntimeError(
                "rankzero.checkpoint() is for programs of recipe script: this run saves its checkpoints itself, and "
                "would take the file for one of them"
            )
        file = Path(os.path.abspath(path))
        if file.is_dir():
            raise IsADirectoryError(f"checkpoint: {file} is a folder; a checkpoint is told of as one file")
        if not file.is_file():
            raise FileNotFoundError(f"checkpoint: there is no file {file}; tell of it once it is saved")
        if encodable(str(file)) != str(file):
            raise ValueError(f"checkpoint: {str(file)!r} is no UTF-8, as a path in the journal has to be")
        fsync_path(file)
        is_taken = self._append(
            CheckpointSaved,
            durable=True,
            step=at,
            epoch=completed,
            path=str(file),
            sha256=sha256_of(file),
            size_bytes=file.stat().st_size,
            best=bool(best),
            values=numbers,
        )
        if self._progress is not None and is_taken:
            self._progress.write("training", at)

    def _append(self, kind: type[Metrics] | type[CheckpointSaved], *, durable: bool = False, **fields: object) -> bool:
        """Append a record, and return whether the run still takes any."""
        try:
            self._journal.append(kind, durable=durable, **fields)
        except JournalError:
            if self._run_dir.completed() is None:
                raise
            return False  # of a process that outlives the program: it comes too late
        return True


@lru_cache(maxsize=4)
def _reports(run_dir: str) -> Reports:
    return Reports(RunDir(Path(run_dir)))


def metric_values(values: Mapping[str, object]) -> dict[str, float]:
    """Return values as numbers, finite or not. Raises TypeError and ValueError that name the metric."""
    return {_metric_name(name): metric_value(name, value) for name, value in values.items()}


def metric_value(name: str, value: object) -> float:
    """Return the number that a value is: an int or float, or a tensor or array of a single one.

    Raises TypeError and ValueError that name the metric.
    """
    number = value
    if not isinstance(value, Real) and callable(item := getattr(value, "item", None)):
        try:
            number = item()
        except (RuntimeError, TypeError, ValueError) as error:
            raise TypeError(f"metric {name!r}: {_shown(value)} is not a single number") from error
    if isinstance(number, bool) or not isinstance(number, Real):
        raise TypeError(f"metric {name!r}: {_shown(value)} is not a number")
    try:
        return float(number)
    except OverflowError as error:
        raise ValueError(f"metric {name!r}: the number is too large for a float") from error


def _metric_name(name: object) -> str:
    if not isinstance(name, str):
        raise TypeError(f"metric {name!r}: a metric is named by text")
    if not is_metric_name(name):
        raise ValueError(f"metric {name[:80]!r}: a name is {METRIC_NAME}")
    return name


def _whole(value: object, what: str, *, least: int = 0, most: int) -> int:
    try:
        number = operator.index(value)  # type: ignore[arg-type]  # that is what is found out
    except TypeError as error:
        if not (isinstance(value, float) and math.isfinite(value) and value == int(value)):
            raise TypeError(f"{what}: {_shown(value)} is not a whole number") from error
        number = int(value)
    if isinstance(value, bool):
        raise TypeError(f"{what}: {value} is a truth value")
    if not least <= number < most:
        raise ValueError(f"{what}: {number} is not from {least} to {most - 1}")
    return number


def _shown(value: object) -> str:
    return f"{repr(value)[:80]} ({type(value).__name__})"
