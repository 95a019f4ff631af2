"""Double precision: a model that computes in float64, where rounding neither hides a difference nor grows into one."""

from typing import Any

import torch
from torch import nn


def in_double(model: nn.Module) -> nn.Module:
    """Turn a model's weights and buffers into float64, and whatever floating point it is called with; returns it.

    It can be pickled, copied and wrapped as before.
    """
    model.double()
    model.register_forward_pre_hook(_inputs_in_double, with_kwargs=True)
    return model


def _inputs_in_double(
    _model: nn.Module, arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return tuple(map(_double, arguments)), {name: _double(value) for name, value in keywords.items()}


def _double(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.double() if value.is_floating_point() else value
    if isinstance(value, (list, tuple)):  # the objects of a batch, in detection
        return type(value)(map(_double, value))
    if isinstance(value, dict):
        return {name: _double(part) for name, part in value.items()}
    return value
