"""Precision: the number formats that a run computes in."""

import warnings
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import nn, optim

from trainer.config import TrainConfig
from trainer.errors import ConfigError
from trainer.loss_scaling import LossScaling

AMP_TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
"""What `amp` may be, and the type that it stands for."""


def autocast(config: TrainConfig, device: torch.device) -> AbstractContextManager[object]:
    """Return the context for forward and loss: mixed precision where `amp` says so."""
    return nullcontext() if config.amp is None else torch.autocast(device.type, dtype=AMP_TYPES[config.amp])


def refuse_unsupported(config: TrainConfig, device: torch.device) -> None:
    """Raise ConfigError where a device does not compute in the `amp` asked for: it is tried, on one small step."""
    if config.amp is None:
        return
    layers = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(2, 2)).to(device)
    optimizer, scaling = optim.SGD(layers.parameters(), lr=0), LossScaling(config, device)
    try:
        with warnings.catch_warnings(), autocast(config, device):
            warnings.simplefilter("ignore")  # that autocast is off after all: the type of the result says so as well
            result = layers(torch.ones(2, 1, 3, 3, device=device))
        scaling.scaled(result.float().sum()).backward()  # type: ignore[no-untyped-call]  # torch's own is untyped
        scaling.unscale(optimizer)
    except RuntimeError as error:  # NotImplementedError is one
        raise ConfigError(f"amp: {config.amp} does not work on {device.type} with this torch: {error}") from error
    if result.dtype is not AMP_TYPES[config.amp]:
        raise ConfigError(f"amp: this torch does not compute in {config.amp} on {device.type}; leave amp out")


def in_float32_or_more(values: torch.Tensor) -> torch.Tensor:
    """Return the values with float32's digits at least; a computation in float64 keeps its own."""
    return values.to(torch.promote_types(values.dtype, torch.float32))
