"""The exponential moving average of a model's weights."""

from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


class WeightAverage:
    """Follows a model's weights and buffers, an update after each optimizer step (Polyak and Juditsky, 1992).

    Every rank keeps its own: the weights they follow are the same, so the averages are.
    """

    def __init__(self, model: nn.Module, *, decay: float) -> None:
        average = get_ema_multi_avg_fn(decay)  # type: ignore[no-untyped-call]  # torch's own is untyped
        self._average = AveragedModel(model, multi_avg_fn=average, use_buffers=True)

    @property
    def model(self) -> nn.Module:
        """The averaged model: for evaluation, never for training."""
        averaged: nn.Module = self._average.module
        return averaged

    def update(self, model: nn.Module) -> None:
        """Take the weights after an optimizer step in; the first ones are the average."""
        self._average.update_parameters(model)

    def continue_at(self, step: int) -> None:
        """Go on from the weights that have been put into `model`: the average after `step` updates."""
        self._average.n_averaged.fill_(step)
