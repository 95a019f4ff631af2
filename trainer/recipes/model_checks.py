"""Model checks: what every recipe asks of a model, whether its name is known or it is the caller's own."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from trainer.config import TrainConfig
from trainer.errors import ConfigError
from trainer.names import nearest


def refuse_unknown_model(config: TrainConfig, *, known: Sequence[str]) -> None:
    """Raise ConfigError where a config's `model` is none of those that its recipe knows, naming the nearest."""
    if config.model not in known:
        raise ConfigError(f"model: {config.model!r} is no model of {config.recipe}; {nearest(config.model, known)}")


def outputs_of(
    model: nn.Module, images: torch.Tensor, *others: Any, config: TrainConfig, is_training: bool = False
) -> Any:
    """Return what a caller's own model makes of images, [N, 3, S, S], and what it is called with beside: in evaluation,
    or as in training.

    The model and torch's random generator are then what they were. Raises ConfigError where it does not take them.
    """
    modes = [(part, part.training) for part in model.modules()]
    buffers = [
        (buffer, buffer.clone()) for buffer in model.buffers()
    ]  # BatchNorm's statistics follow what it trains on
    model.train(is_training)
    try:
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            return model(images, *others)
    except (RuntimeError, ValueError, TypeError, AssertionError, LookupError) as error:
        raise ConfigError(
            f"model: {config.model} does not take a batch of images of shape {tuple(images.shape)}: {error}"
        ) from error
    finally:
        for part, mode in modes:
            part.training = mode
        with torch.no_grad():
            for buffer, before in buffers:
                buffer.copy_(before)
