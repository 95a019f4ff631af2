"""The loss of a batch: a recipe's, in the precision of the run, and the scalar that it has to be."""

from typing import Any

import torch
from torch import nn

from trainer.config import TrainConfig
from trainer.errors import ConfigError
from trainer.precision import autocast
from trainer.recipes.recipe import Recipe


def batch_loss(
    recipe: Recipe, model: nn.Module, batch: Any, *, config: TrainConfig, device: torch.device
) -> torch.Tensor:
    """Return the mean loss of a training batch, as `prepare_train` has made it: a scalar.

    Raises ConfigError, naming the recipe, for anything else.
    """
    with autocast(config, device):
        loss: object = recipe.loss(model, batch)
    if not isinstance(loss, torch.Tensor):
        raise ConfigError(f"recipe {recipe.name}: loss returns {type(loss).__name__}, and no tensor")
    if loss.dim() > 0:
        raise ConfigError(
            f"recipe {recipe.name}: loss returns a tensor of shape {tuple(loss.shape)}, and has to return a scalar, "
            "the mean over the samples of the batch"
        )
    return loss
