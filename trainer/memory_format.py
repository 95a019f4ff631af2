"""The memory format: images and convolutions in NHWC (channels_last), the same values in another order."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from trainer.recipes.recipe import TaskData


def weights_in_channels_last(model: nn.Module) -> nn.Module:
    """Put the model's 4-D weights into NHWC, in place, and return it."""
    return model.to(memory_format=torch.channels_last)


def batches_in_channels_last(data: TaskData) -> TaskData:
    """Return the data with every 4-D tensor of a prepared batch, [samples, channels, height, width], in NHWC."""
    return replace(data, prepare_train=_after(data.prepare_train), prepare_val=_after(data.prepare_val))


def _after(prepare: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda batch: _in_channels_last(prepare(batch))


def _in_channels_last(batch: Any) -> Any:
    if isinstance(batch, torch.Tensor):
        return batch.contiguous(memory_format=torch.channels_last) if batch.dim() == 4 else batch
    if isinstance(batch, (tuple, list)):
        return type(batch)(_in_channels_last(part) for part in batch)
    if isinstance(batch, dict):
        return {name: _in_channels_last(part) for name, part in batch.items()}
    return batch
