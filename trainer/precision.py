"""Precision: the number formats that a run computes in."""

from contextlib import AbstractContextManager, nullcontext

import torch

from trainer.config import TrainConfig


def autocast(config: TrainConfig, device: torch.device) -> AbstractContextManager[object]:
    """Return the context for forward and loss: mixed precision where `amp` says so."""
    return nullcontext() if config.amp is None else torch.autocast(device.type, dtype=torch.bfloat16)


def in_float32_or_more(values: torch.Tensor) -> torch.Tensor:
    """Return the values with float32's digits at least; a computation in float64 keeps its own."""
    return values.to(torch.promote_types(values.dtype, torch.float32))
