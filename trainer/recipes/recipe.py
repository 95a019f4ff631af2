"""What a recipe is: everything about a task that the training loop does not know."""

from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import torch
from torch import nn
from torch.utils.data import Dataset, default_collate

from trainer.config import TrainConfig
from trainer.data.screening import named
from trainer.error_report import encodable
from trainer.errors import ConfigError, DataError
from trainer.names import distinct
from trainer.process_group import ProcessGroup
from trainer.recipes.options import RecipeOptions, options_of

__all__ = ["Evaluation", "Quantity", "Recipe", "RecipeOptions", "TaskData", "open_data", "options_of", "wants_sync_bn"]


def _as_it_is(batch: Any) -> Any:
    return batch


@dataclass(frozen=True)
class TaskData:
    """The data sets of a run. An item may hold what is random about its sample: it is loaded with seeded generators."""

    train: Dataset[Any]
    val: Dataset[Any]
    samples: str
    """Says which samples are in `train` and which in `val`, for people and for comparing: the numbers, and a digest of
    their names. A run continues only from a checkpoint of the same."""
    class_names: tuple[str, ...] = ()
    """Names of the classes in the order of the model's outputs; empty where there are none."""
    warnings: tuple[str, ...] = field(default=())
    """What the user should know about the data."""
    notes: tuple[str, ...] = ()
    """What is told of the data beside, such as that it is too large for the cache."""
    collate: Callable[[list[Any]], Any] = default_collate
    """Makes a batch of items, in a loader process."""
    prepare_train: Callable[[Any], Any] = _as_it_is
    """Turns a collated training batch, already on the rank's device, into what `loss` takes: what is random about a
    sample has to be in its item, so that it is the same on every device list."""
    prepare_val: Callable[[Any], Any] = _as_it_is
    """Turns a validation batch, already on the rank's device, into what `measure` takes."""

    def __post_init__(self) -> None:
        """Names of folders, and of what is in annotations, need not be text, and journal and checkpoints hold nothing
        else; nor need they be different, and the figures of each class are told by its name.

        It also makes tuples of lists, which the recipes of packages may give.
        """
        for name in ("class_names", "warnings", "notes"):
            object.__setattr__(self, name, tuple(map(encodable, getattr(self, name))))
        told = distinct(self.class_names)
        if renamed := [new for new, given in zip(told, self.class_names, strict=True) if new != given]:
            warning = f"data: classes have the name of another and are told by a number: {named(renamed)}"
            object.__setattr__(self, "class_names", told)
            object.__setattr__(self, "warnings", (*self.warnings, warning))


@dataclass(frozen=True)
class Quantity:
    """Something that `measure` measures of each validation sample."""

    name: str
    shape: tuple[int, ...] = ()
    """Shape of its value for one sample."""
    is_gathered: bool = False
    """Whether `summarize` gets the values of all samples, [samples, *shape], instead of their sum, [*shape]."""


@dataclass(frozen=True)
class Evaluation:
    """What a validation has found."""

    metrics: dict[str, float]
    """Metrics named `val/…`."""
    by_class: dict[str, dict[str, float]] = field(default_factory=dict)
    """Figures of each class, such as how many samples it has and how many of them were told correctly."""


class Recipe(Protocol):
    """A task: how to build its data and model, what the loss is, and what is measured. One is made for each run."""

    name: ClassVar[str]
    description: ClassVar[str]
    best_metric: ClassVar[str]
    """The validation metric whose highest value marks the best checkpoint."""
    tie_metric: ClassVar[str]
    """The validation metric whose lowest value does, among equal ones of the first."""
    spawnable: ClassVar[bool]
    """Whether our own launcher may start its ranks; else several devices need torchrun."""
    sync_bn_default: ClassVar[bool]
    """What `sync_bn` means where it is left out, for a model that has BatchNorm."""
    options_model: ClassVar[type[RecipeOptions]]
    """What `options` of the config may hold; its docstrings reach the catalog."""

    def __init__(self, config: TrainConfig) -> None:
        """Raises ConfigError for options that it does not take."""

    @classmethod
    def models(cls) -> Sequence[str]:
        """Return the names that `model` may have."""

    def build_data(self, group: ProcessGroup) -> TaskData:
        """Open the data sets, the same on every rank; `group` is for what the ranks do together, such as looking for
        broken files. Raises ConfigError or DataError."""

    def build_model(self, data: TaskData) -> nn.Module:
        """Build the model that the config names, on the CPU and with fresh weights, from the generators' state alone.

        Raises ConfigError.
        """

    def check_model(self, model: nn.Module, data: TaskData) -> None:
        """Raise ConfigError where a model of the caller's own does not suit the data; it stays as it is."""

    def loss(self, model: nn.Module, batch: Any) -> torch.Tensor:
        """Return the mean loss over the samples of a training batch: a scalar, in which each sample weighs the same."""

    def quantities(self, data: TaskData) -> tuple[Quantity, ...]:
        """Return what `measure` measures; a rank whose share is empty never calls it."""

    def measure(self, model: nn.Module, batch: Any) -> dict[str, torch.Tensor]:
        """Return each quantity for each sample of a validation batch: tensors of shape [samples, *shape]."""

    def summarize(self, totals: Mapping[str, torch.Tensor], count: int, data: TaskData) -> Evaluation:
        """Turn the quantities of all `count` validation samples, float64 on the CPU, into metrics: `best_metric` and
        `tie_metric` and what else there is to tell.

        Rank 0 alone calls it, so it may take its time, and must wait for no other rank.
        """


def open_data(recipe: Recipe, group: ProcessGroup) -> TaskData:
    """Return the recipe's data sets, each with a sample or more; every rank has to call.

    Raises ConfigError or DataError.
    """
    data = recipe.build_data(group)
    for what, samples in (("training", data.train), ("validation", data.val)):
        if not isinstance(samples, Sized):
            raise ConfigError(f"recipe {recipe.name}: its {what} set, a {type(samples).__name__}, has no length")
        if len(samples) == 0:
            raise DataError(f"data: the {what} set has no sample")
    return data


def wants_sync_bn(recipe: Recipe, config: TrainConfig) -> bool:
    """Return whether BatchNorm is to normalise over the global batch: as the config says, else as the recipe does."""
    return recipe.sync_bn_default if config.sync_bn is None else config.sync_bn
