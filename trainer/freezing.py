"""Freezing: the parts of a model that `freeze` names, and that training leaves as they are."""

from collections.abc import Sequence

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from trainer.errors import ConfigError
from trainer.names import closest

_LISTED = 20


def freeze(model: nn.Module, names: Sequence[str]) -> None:
    """Take the parameters of the named modules, and the named parameters, out of training.

    They require no gradient from here on: the optimizer does not have them, and DistributedDataParallel does not wait
    for them. Raises ConfigError for a name that the model does not have, and where nothing is left to train.
    """
    parts = dict(model.named_modules(remove_duplicate=False)) | dict(model.named_parameters(remove_duplicate=False))
    for name in names:
        if name not in parts:
            raise ConfigError(f"freeze: the model has no part {name!r}; {_meant(name, model, tuple(parts))}")
        parts[name].requires_grad_(False)
    if names and not any(parameter.requires_grad for parameter in model.parameters()):
        raise ConfigError(f"freeze: with {', '.join(names)} nothing of the model is left to train; name fewer parts")


def held_batchnorm(model: nn.Module, names: Sequence[str]) -> frozenset[str]:
    """Return the names of the BatchNorm layers in frozen modules: they normalise by statistics that stay as they are.

    One whose weight alone is named goes on with its statistics.
    """
    return frozenset(
        name
        for name, layer in model.named_modules(remove_duplicate=False)
        if isinstance(layer, _BatchNorm) and any(f"{name}.".startswith(f"{part}.") for part in names)
    )


def set_training(model: nn.Module, names: Sequence[str]) -> None:
    """Put a model into training mode, all but the BatchNorm layers of its frozen modules."""
    model.train()
    for name in held_batchnorm(model, names):
        model.get_submodule(name).eval()


def _meant(name: str, model: nn.Module, known: Sequence[str]) -> str:
    if near := closest(name, known):
        return f"did you mean {near}?"
    parts = [part for part, _ in model.named_children()]
    return f"it is made of {', '.join(parts[:_LISTED])}{', …' if len(parts) > _LISTED else ''}"
