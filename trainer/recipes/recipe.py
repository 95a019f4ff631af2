"""What a recipe is: everything about a task that the training loop does not know."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import nn
from torch.utils.data import Dataset

from trainer.config import TrainConfig


@dataclass(frozen=True)
class TaskData:
    """The data sets of a run. Items are whatever the recipe's own `loss` takes, collated by torch's default."""

    train: Dataset[Any]
    val: Dataset[Any]
    samples: str
    """Says which samples are in `train` and which in `val`, for people and for comparing: the numbers, and a digest of
    their names. A run continues only from a checkpoint of the same."""
    class_names: tuple[str, ...] = ()
    """Names of the classes in the order of the model's outputs; empty where there are none."""
    warnings: tuple[str, ...] = field(default=())
    """What the user should know about the data."""


class Recipe(Protocol):
    """A task: how to build its data and model, what the loss is, and what is measured."""

    name: str
    description: str
    best_metric: str
    """The validation metric whose highest value marks the best checkpoint."""
    tie_metric: str
    """The validation metric whose lowest value does, among equal ones of the first."""
    spawnable: bool
    """Whether our own launcher may start its ranks; else several devices need torchrun."""
    sync_bn_default: bool
    """What `sync_bn` means where it is left out, for a model that has BatchNorm."""

    def models(self) -> Sequence[str]:
        """Return the names that `model` may have."""

    def build_data(self, config: TrainConfig) -> TaskData:
        """Open the data sets. Raises ConfigError or DataError."""

    def build_model(self, config: TrainConfig, data: TaskData) -> nn.Module:
        """Build the model that the config names, on the CPU and with fresh weights, from the generators' state alone.

        Raises ConfigError.
        """

    def check_model(self, model: nn.Module, config: TrainConfig, data: TaskData) -> None:
        """Raise ConfigError where a model of the caller's own does not suit the data; it stays as it is."""

    def loss(self, model: nn.Module, batch: Any) -> torch.Tensor:
        """Return the mean loss over the samples of a batch: a scalar."""

    def quantities(self, data: TaskData) -> tuple[str, ...]:
        """Return the names of what `measure` measures; a rank whose share is empty never calls it."""

    def measure(self, model: nn.Module, batch: Any) -> dict[str, torch.Tensor]:
        """Return each quantity for each sample of a validation batch: tensors of shape [samples]."""

    def summarize(self, sums: Mapping[str, float], count: int) -> dict[str, float]:
        """Turn the sums of the quantities over all `count` validation samples into metrics named `val/…`."""


def wants_sync_bn(recipe: Recipe, config: TrainConfig) -> bool:
    """Return whether BatchNorm is to normalise over the global batch: as the config says, else as the recipe does."""
    return recipe.sync_bn_default if config.sync_bn is None else config.sync_bn
