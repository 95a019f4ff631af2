"""`train()`: a run from a plain Python script, on the devices named, with no service."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainer.config import SCRIPT
from trainer.environment import RankEnvironment, is_rank
from trainer.error_report import error_of
from trainer.errors import Cause, CheckpointError, ConfigError
from trainer.journal import EpochEnd, Record, read_records
from trainer.local_run import new_run_dir, run_in
from trainer.preflight import check_inputs
from trainer.run_dir import RunDir
from trainer.terminal import say
from trainer.train_file import TrainFile

if TYPE_CHECKING:
    from torch import nn

    from trainer.caller import Call


@dataclass(frozen=True)
class TrainResult:
    """A run that has completed."""

    run_dir: Path
    values: dict[str, float | None]
    """Validation metrics of the last epoch."""
    best_values: dict[str, float | None]
    """Validation metrics of the best checkpoint."""
    best_checkpoint: Path | None
    """None on a node other than node 0, which alone has checkpoints and metrics, of a run on several."""
    epochs: tuple[EpochEnd, ...]
    _own_model: "nn.Module | None" = field(default=None, repr=False)

    def load_model(self) -> "nn.Module":
        """Return the model with the best weights: the caller's own, or one built anew by its name, on the CPU.

        Raises CheckpointError or DataError where the checkpoint or the data, whose classes the model has, are gone.
        """
        if self.best_checkpoint is None:
            raise CheckpointError(f"{self.run_dir}: the weights are on node 0")
        if self._own_model is not None:
            return self._own_model
        from trainer.reload import load_model

        return load_model(self.best_checkpoint)


def train(
    *,
    model: "str | nn.Module",
    data: str | Path,
    device: object = "auto",
    nproc_per_node: int | None = None,
    output: str | Path | None = None,
    callbacks: Sequence[Callable[[Record], None]] = (),
    **options: Any,
) -> TrainResult:
    """Train a model and return its metrics and best checkpoint, showing progress on the terminal.

    `model` is a name, or a module of the caller's own, which starts from the weights it has and ends with those of the
    best checkpoint; its device and its train or eval mode stay. `device` is a device list ("0,1", [0, 1], "cpu", …),
    one process each; `nproc_per_node` starts that many on "cpu". `output` is the run directory to make, below ./runs
    where left out. Each of `callbacks` is called on rank 0 with each record of the journal; trainer.Callback sorts them
    by kind. `options` are the fields of TrainConfig and, for several nodes, the launch fields of a train.yaml: node 0
    alone has the metrics and the weights of such a run.

    The ranks are processes of their own. With a model by name and no callbacks they never import the calling script. A
    model of the caller's own and callbacks are pickled, and the ranks import the script to rebuild them: so the classes
    have to be defined at the top level, and the call belongs under `if __name__ == "__main__":`.

    Under torchrun, which starts a script as ranks, train() starts none: it trains as this rank, in this process, and
    returns, or raises, on each of them.

    More than one rank train by DistributedDataParallel, so each parameter that requires a gradient has to get one in
    each step; torch's error says so from the second step on. Parameters with requires_grad=False stay as they are.

    Raises:
        ConfigError: before anything is started, for options that cannot be run, or an argument that cannot be pickled;
            DataError, CheckpointError: likewise, for a data folder or a checkpoint to resume from that is not there.
        RunFailedError: a rank failed; its message names the rank, its `cause` says why.
        RunInterruptedError: SIGINT or SIGTERM ended the run, with a checkpoint saved.
    """
    if is_rank(os.environ):
        from trainer.caller import refuse_call_inside_run

        refuse_call_inside_run("train()")
    if options.get("recipe") == SCRIPT:
        raise ConfigError(
            "recipe: train() trains a model, and script runs a program; write a train.yaml for it and start that by "
            "`python -m trainer train.yaml`"
        )
    call = None
    if not isinstance(model, str) or callbacks not in ((), []):
        from trainer.caller import call_of  # imports torch

        call = call_of(model, callbacks)
    file = TrainFile.of(
        {
            "model": model if isinstance(model, str) else f"{type(model).__module__}.{type(model).__qualname__}",
            # A Path is never a data set's name.
            "data": os.path.join(os.curdir, os.path.expanduser(data)) if isinstance(data, Path) else data,
            "device": device,
            "nproc_per_node": nproc_per_node,
        }
        # Such as resume=result.best_checkpoint.
        | {name: str(value) if isinstance(value, Path) else value for name, value in options.items()}
    )
    folder = Path(os.path.expanduser(output)) if output is not None else None
    if is_rank(os.environ):
        from trainer.torchrun import train_as_rank

        run_dir = train_as_rank(file, RankEnvironment.read(os.environ), output=folder, call=call)
    else:
        run_dir = _train_in_ranks(file, output=folder, call=call)
    return _result(run_dir, call.model if call is not None else None)


def _train_in_ranks(file: TrainFile, *, output: Path | None, call: "Call | None") -> RunDir:
    config = file.run_config()
    check_inputs(config, written=file.train, has_own_model=call is not None and call.model is not None)
    packed = None
    if call is not None:
        from trainer.caller import pack

        packed = pack(call)
    run_dir = RunDir(new_run_dir(output))
    if packed is not None:
        from trainer.caller import write_call

        write_call(run_dir, packed)
    run_dir.create(config.model_copy(update={"call": packed is not None}))
    prints = f"; what the callbacks print is in {run_dir.log(0)}" if call is not None and call.callbacks else ""
    say(f"run directory: {run_dir.path}{prints}")
    outcome = run_in(run_dir)
    if outcome.error is not None:
        error = error_of(outcome.error, run_dir.path)
        if outcome.error.cause in (Cause.EXCEPTION, Cause.HANG) and outcome.error.traceback is not None:
            error.add_note(outcome.error.traceback)  # the rank's: what was raised may be the script's own doing
        raise error
    return run_dir


def _result(run_dir: RunDir, own_model: "nn.Module | None") -> TrainResult:
    completed = run_dir.completed()
    named = completed.best_checkpoint if completed is not None else None
    saved = run_dir.checkpoint_at(named) if named is not None else None
    best = run_dir.path / named if named is not None else None
    if own_model is not None and best is not None:
        from trainer.checkpoints import load_checkpoint, restore_weights

        restore_weights(best, load_checkpoint(best, verify_digest=True).model, own_model)
    return TrainResult(
        run_dir=run_dir.path,
        values=completed.values if completed is not None else {},
        best_values=saved.values if saved is not None else {},
        best_checkpoint=best,
        epochs=tuple(record for record in read_records(run_dir.journal) if isinstance(record, EpochEnd)),
        _own_model=own_model,
    )
