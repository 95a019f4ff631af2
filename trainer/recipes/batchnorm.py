"""BatchNorm as a recipe's options set it."""

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm


def set_momentum(model: nn.Module, momentum: float | None) -> None:
    """Give every BatchNorm layer this momentum; None leaves each its own."""
    if momentum is not None:
        for layer in model.modules():
            if isinstance(layer, _BatchNorm):
                layer.momentum = momentum
