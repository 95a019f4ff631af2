"""The exponential moving average of a model's weights."""

from collections.abc import Callable

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel


class WeightAverage:
    """Follows a model's weights and buffers, an update after each optimizer step (Polyak and Juditsky, 1992).

    Every rank keeps its own: the weights that they follow are the same, and so are buffers with `sync_bn`.
    """

    def __init__(self, model: nn.Module, *, decay: float) -> None:
        self._average = AveragedModel(model, multi_avg_fn=_averaging(decay), use_buffers=True)
        # Such as an attention mask: between infinities there is no average.
        self._never_finite = [name for name, value in model.named_buffers() if not value.isfinite().all()]

    @property
    def model(self) -> nn.Module:
        """The averaged model: for evaluation, never for training."""
        averaged: nn.Module = self._average.module
        return averaged

    def update(self, model: nn.Module) -> None:
        """Take the weights after an optimizer step in; the first ones are the average."""
        self._average.update_parameters(model)
        for name in self._never_finite:
            self.model.get_buffer(name).copy_(model.get_buffer(name))

    def continue_at(self, step: int) -> None:
        """Go on from the weights that have been put into `model`: the average after `step` updates."""
        self._average.n_averaged.fill_(step)


Tensors = tuple[torch.Tensor, ...] | list[torch.Tensor]


def _averaging(decay: float) -> Callable[[Tensors, Tensors, torch.Tensor | int], None]:
    @torch.no_grad()
    def update(averaged: Tensors, current: Tensors, updates: torch.Tensor | int) -> None:
        """Called for tensors of one type. torch's own averages integers as well, and so ruins a table of indices.

        The decay is approached from below, as in TensorFlow's ExponentialMovingAverage with `num_updates`: otherwise a
        short run would hand out little but its random start.
        """
        if averaged[0].is_floating_point() or averaged[0].is_complex():
            torch._foreach_lerp_(averaged, current, 1 - min(decay, (1 + int(updates)) / (10 + int(updates))))
        else:
            for mine, theirs in zip(averaged, current, strict=True):
                mine.copy_(theirs)

    return update
