"""Resuming: what a run continues from, what it may not, and what makes its first step the one that would have come."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from trainer.assembly import Assembly
from trainer.checkpoints import Checkpoint, load_checkpoint, restore_optimizer, restore_weights
from trainer.config import TrainConfig
from trainer.environment import RankEnvironment
from trainer.errors import CheckpointError
from trainer.recipes.recipe import TaskData
from trainer.run_dir import RunConfig, RunDir


def resume_path(run_dir: RunDir, config: RunConfig) -> str:
    """What to continue from: this directory's own last checkpoint, else the earlier attempt's, else the user's."""
    if own := run_dir.last_checkpoint():
        return str(run_dir.path / own.path)
    return str(config.resume or config.train.resume or "")


@dataclass(frozen=True)
class Resume:
    """A checkpoint to continue from, and where it lies."""

    path: Path
    checkpoint: Checkpoint

    @classmethod
    def read(cls, path: Path, environment: RankEnvironment, *, brought: Path | None = None) -> "Resume":
        """Read, as any rank, what rank 0 continues from. Raises CheckpointError naming the file.

        `brought` is where this node has its own file of what node 0 was told to continue from.
        """
        if environment.node_rank > 0 and not path.is_file():
            # Of the same name: node 0 may go on from a later one, which it has saved since it was told.
            if brought is not None and brought.name == path.name and brought.is_file():
                return cls(brought, load_checkpoint(brought))
            raise CheckpointError(
                f"{path}: node 0 continues from it, and this node does not have it; the checkpoints of a run on "
                "several nodes have to lie on a file system that all of them share, under one path"
            )
        return cls(path, load_checkpoint(path, verify_digest=environment.rank == 0))

    @property
    def batch(self) -> int | None:
        """The global batch of the run, which a run that had it measured goes on with."""
        batch = self.checkpoint.config.get("batch")
        return batch if isinstance(batch, int) else None

    def refuse_other_run(self, config: TrainConfig, data: TaskData, *, steps_per_epoch: int) -> None:
        """Raise CheckpointError, naming both values, where the checkpoint is no earlier point of this run.

        A step count means nothing where the steps were others (another seed, batch or data set), and a validation means
        nothing on samples that were trained on. What the data is called does not matter: it may have moved.
        """
        checkpoint, ours = self.checkpoint, config.model_dump(mode="json")
        # An option that an earlier release did not know had no effect, which is what each one's default stands for.
        options = TrainConfig.model_fields.items()
        theirs = {name: option.default for name, option in options if not option.is_required()} | checkpoint.config
        for name in ("recipe", "model", "optimizer", "batch", "nbs", "seed", "ema"):
            self._refuse(name, theirs.get(name), ours[name])
        # The optimizer's state is that of what was trained.
        begun = "; to train other parts from here on, begin a run with it as its weights"
        self._refuse("freeze", sorted(theirs["freeze"]), sorted(ours["freeze"]), because=begun)
        if (checkpoint.class_names, checkpoint.samples) != (data.class_names, data.samples):
            # What the user set comes first: it says more than a count, and a count more than a digest.
            for name in ("val_fraction", "data"):
                self._refuse(name, theirs.get(name), ours[name], because=", which has other samples")
            self._refuse("classes", _listed(checkpoint.class_names), _listed(data.class_names))
            self._refuse("samples", checkpoint.samples, data.samples)
        self._refuse("steps per epoch", checkpoint.steps_per_epoch, steps_per_epoch)

    def restore(self, parts: Assembly) -> None:
        """Put the checkpoint's state into the parts of this run. Raises CheckpointError naming the first misfit."""
        weights = self.checkpoint.model
        if parts.average is not None:
            assert self.checkpoint.unaveraged is not None, "ema was the same"
            restore_weights(self.path, weights, parts.average.model)
            parts.average.continue_at(self.checkpoint.step - self.checkpoint.skipped_steps)
            weights = self.checkpoint.unaveraged
        restore_weights(self.path, weights, parts.model)
        restore_optimizer(self.path, self.checkpoint, parts.optimizer)
        parts.scaling.restore(self.checkpoint.scaler, skipped_steps=self.checkpoint.skipped_steps)

    def _refuse(self, name: str, theirs: Any, ours: Any, *, because: str = "") -> None:
        if theirs != ours:
            raise CheckpointError(
                f"{self.path}: made with {name}={theirs!r}, and this run has {name}={ours!r}{because}"
            )


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


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names[:20]) + (f", … ({len(names)})" if len(names) > 20 else "")
