"""Resuming: what a run continues from, what it may not, and what makes its first step the one that would have come."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from trainer.checkpoints import Checkpoint
from trainer.config import TrainConfig
from trainer.errors import CheckpointError
from trainer.recipes.recipe import TaskData
from trainer.run_dir import RunConfig, RunDir


def resume_path(run_dir: RunDir, config: RunConfig) -> str:
    """What to continue from: this directory's own last checkpoint, else the earlier attempt's, else the user's."""
    if own := run_dir.last_checkpoint():
        return str(run_dir.path / own.path)
    return str(config.resume or config.train.resume or "")


def refuse_other_run(
    path: Path, checkpoint: Checkpoint, config: TrainConfig, data: TaskData, *, steps_per_epoch: int
) -> None:
    """Raise CheckpointError, naming both values, where the checkpoint is no earlier point of this run.

    A step count means nothing where the steps were others (another seed, batch or data set), and a validation means
    nothing on samples that were trained on. What the data is called does not matter: it may have moved.
    """
    ours = config.model_dump(mode="json")
    for name in ("recipe", "model", "optimizer", "batch", "seed"):
        _refuse(path, name, checkpoint.config.get(name), ours[name])
    if (checkpoint.class_names, checkpoint.samples) != (data.class_names, data.samples):
        # What the user set comes first: it says more than a count, and a count more than a digest.
        for name in ("val_fraction", "data"):
            _refuse(path, name, checkpoint.config.get(name), ours[name], because="which has other samples")
        _refuse(path, "classes", _listed(checkpoint.class_names), _listed(data.class_names))
        _refuse(path, "samples", checkpoint.samples, data.samples)
    _refuse(path, "steps per epoch", checkpoint.steps_per_epoch, steps_per_epoch)


def rehearse(model: nn.Module, loss: Callable[[], torch.Tensor]) -> None:
    """Run one forward and backward pass on all ranks together, and leave no trace of it in the model.

    DDP sorts its buckets anew after the first step that it sees, by the order in which gradients were ready (Li et al.,
    PyTorch Distributed, VLDB 2020, section 3.2.3). In which order more than two ranks' values are added up depends on
    where they lie in a bucket, and so does the last bit of the sum. A continued run has to have done its sorting, as
    the undisturbed run had, before its first step.
    """
    before = [buffer.clone() for buffer in model.buffers()]
    loss().backward()  # type: ignore[no-untyped-call]  # torch's own backward is untyped
    with torch.no_grad():
        for buffer, value in zip(model.buffers(), before, strict=True):
            buffer.copy_(value)
    model.zero_grad(set_to_none=True)


def _refuse(path: Path, name: str, theirs: Any, ours: Any, *, because: str = "") -> None:
    if theirs != ours:
        raise CheckpointError(
            f"{path}: made with {name}={theirs!r}, and this run has {name}={ours!r}{because and ', ' + because}"
        )


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names[:20]) + (f", … ({len(names)})" if len(names) > 20 else "")
