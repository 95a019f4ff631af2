"""`train()`: a run from a plain Python script, on the devices named, with no service."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.command import new_run_dir, run_in
from trainer.environment import is_rank
from trainer.errors import Cause, ConfigError, RunFailedError, RunInterruptedError
from trainer.journal import EpochEnd, read_records
from trainer.run_dir import RunDir
from trainer.train_file import TrainFile


@dataclass(frozen=True)
class TrainResult:
    """A run that has completed."""

    run_dir: Path
    values: dict[str, float | None]
    """Validation metrics of the last epoch."""
    best_checkpoint: Path
    epochs: tuple[EpochEnd, ...]


def train(
    *,
    model: str,
    data: str | Path,
    batch: int,
    device: object = "auto",
    nproc_per_node: int | None = None,
    output: str | Path | None = None,
    **options: Any,
) -> TrainResult:
    """Train a model and return its metrics and best checkpoint, showing progress on the terminal.

    `device` is a device list ("0,1", [0, 1], "cpu", …), one process each; `nproc_per_node` starts that many on "cpu".
    `output` is the run directory to make, below ./runs where left out. `options` are the fields of TrainConfig.

    The ranks are processes of their own that never import the calling script, so it needs no `__main__` guard.

    Raises:
        ConfigError: before anything is started, for options that cannot be run.
        RunFailedError: a rank failed; its message names the rank, its `cause` says why.
        RunInterruptedError: SIGINT or SIGTERM ended the run, with a checkpoint saved.
    """
    if is_rank(os.environ):
        raise ConfigError("train() starts its own ranks; under torchrun use `torchrun … -m trainer train.yaml`")
    folder = os.path.join(os.curdir, data) if isinstance(data, Path) else data  # a Path is never a data set's name
    fields = {"model": model, "data": str(folder), "batch": batch, "device": device, "nproc_per_node": nproc_per_node}
    config = TrainFile.of(fields | options).run_config()
    run_dir = RunDir(new_run_dir(Path(output) if output is not None else None))
    run_dir.create(config)
    outcome = run_in(run_dir)
    if outcome.completed is None:
        assert outcome.error is not None
        if outcome.error.cause is Cause.INTERRUPTED:
            raise RunInterruptedError(f"{outcome.error.message} (run directory {run_dir.path})")
        where = f"rank {outcome.error.rank}: " if outcome.error.rank is not None else ""
        raise RunFailedError(
            f"{where}{outcome.error.message} (run directory {run_dir.path})", cause=outcome.error.cause
        )
    records = read_records(run_dir.journal)
    return TrainResult(
        run_dir=run_dir.path,
        values=outcome.completed.values,
        best_checkpoint=run_dir.path / outcome.completed.best_checkpoint,
        epochs=tuple(record for record in records if isinstance(record, EpochEnd)),
    )
