"""Stepping: one optimizer step on one rank, from its batches to the moved weights."""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import nn

from trainer.assembly import Assembly
from trainer.batch_loss import batch_loss
from trainer.cuda_graph import GraphedComputation, record_on_cuda
from trainer.data.loading import on_device
from trainer.loss_watch import LossWatch
from trainer.optimization import clip_gradients
from trainer.process_group import ProcessGroup
from trainer.resuming import rehearse
from trainer.seeds import seed_batch
from trainer.strategies import accumulating
from trainer.sync_batchnorm import count_batch


@dataclass(frozen=True)
class Step:
    """What one optimizer step was."""

    loss: torch.Tensor
    """This rank's part of the mean loss over the step's samples: the mean over ranks is the whole."""
    gradient_norm: torch.Tensor | None
    """With `clip_norm`, the norm of all gradients together before it: a scalar, the same on every rank."""


class Stepper:
    """Takes the optimizer steps of one rank."""

    def __init__(
        self, parts: Assembly, replica: nn.Module, group: ProcessGroup, loss_watch: LossWatch, *, rehearses: bool
    ) -> None:
        """`replica` is the model as it computes together with the other ranks'. `rehearses`: see `rehearse`."""
        self.parts, self.replica, self.group, self.loss_watch = parts, replica, group, loss_watch
        self.config = parts.config
        self.rehearsal_is_due = rehearses
        self.graphed: GraphedComputation | None = None
        if parts.uses_cuda_graph:
            self.graphed = GraphedComputation(parts.model, self._gradients, record=record_on_cuda)

    def take(self, batches: Iterator[Any], *, epoch: int, step_in_epoch: int, step: int) -> Step:
        """Take the step with index `step` (from 0) in all, over the parts that are accumulated for it.

        Raises NonFiniteLossError.
        """
        self.parts.optimizer.zero_grad(set_to_none=True)
        numbers = self.parts.sampler.parts_of(step_in_epoch)
        loss: torch.Tensor | float = 0.0
        for number in numbers:
            batch = self.parts.data.prepare_train(on_device(next(batches), self.group.device))
            count_batch(self.parts.model, self.parts.sampler.local_size(number) > 0)
            if self.rehearsal_is_due:  # outside of what accumulates: DDP sorts its buckets when gradients are averaged
                rehearse(self.parts.model, partial(self._loss, batch))
                self.rehearsal_is_due = False
            seed_batch(self.config.seed, rank=self.group.rank, epoch=epoch, batch=number)
            # Gradients of the parts before the last stay with their rank until the last one's are averaged.
            with nullcontext() if number == numbers[-1] else accumulating(self.replica):
                loss = loss + self._backward(batch, number, step)
            if number != numbers[-1]:
                self.group.alive()
        gradient_norm = self._update(step)
        self.loss_watch.after(step + 1)
        assert isinstance(loss, torch.Tensor), "a step has a batch"
        return Step(loss, gradient_norm)

    def _backward(self, batch: Any, number: int, step: int) -> torch.Tensor:
        """Add up the gradients of one part of the epoch; return this rank's part of the step's mean loss."""
        if self.graphed is not None:  # one rank and one batch for each step, which weighs 1
            sampler = self.parts.sampler
            loss = self.graphed(batch, is_full=sampler.global_size(number) == sampler.part)
            self.loss_watch.loss(step + 1, loss)
            return loss
        loss = self._loss(batch)
        self.loss_watch.loss(step + 1, loss)
        weight = self.parts.sampler.weight(number)
        share = loss if weight == 1 else loss * weight
        self.parts.scaling.scaled(share).backward()  # type: ignore[no-untyped-call]  # torch's own backward is untyped
        return loss.detach() * weight

    def _gradients(self, batch: Any) -> torch.Tensor:
        """Compute the gradients of one batch by itself; return its mean loss."""
        loss = self._loss(batch)
        loss.backward()  # type: ignore[no-untyped-call]  # torch's own backward is untyped
        return loss.detach()

    def _update(self, step: int) -> torch.Tensor | None:
        """Move the weights by the step's gradients; return the gradients' norm, where it is limited."""
        optimizer, limit = self.parts.optimizer, self.config.clip_norm
        self.parts.scaling.unscale(optimizer)
        norm = clip_gradients(optimizer, limit) if limit is not None else None
        is_taken = self.parts.scaling.step(optimizer, number=step + 1, rank=self.group.rank)
        if is_taken and self.parts.average is not None:
            self.parts.average.update(self.parts.model)
        return norm

    def _loss(self, batch: Any) -> torch.Tensor:
        return batch_loss(self.parts.recipe, self.replica, batch, config=self.config, device=self.group.device)
