"""Strategies: how the replicas of a model on several devices compute as one, by `train.strategy`."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DataParallel, DistributedDataParallel

from trainer.environment import RankEnvironment
from trainer.errors import ConfigError
from trainer.precision import AMP_TYPES
from trainer.process_group import ProcessGroup
from trainer.recipes.recipe import Recipe
from trainer.run_dir import RunConfig


def replicate(model: nn.Module, *, group: ProcessGroup, config: RunConfig) -> nn.Module:
    """Wrap the model so that a backward pass leaves the mean of the gradients over all devices in its parameters.

    Among ranks that is DistributedDataParallel's work. One rank with several devices ("dp") has DataParallel split
    dimension 0 of each batch among them. Alone on one device, and on simulated ones, the model stays as it is.
    """
    if group.store is not None:
        device_ids = [group.device.index] if group.device.type == "cuda" else None
        return DistributedDataParallel(model, device_ids=device_ids, gradient_as_bucket_view=True)
    if len(config.devices) > 1 and not config.simulated:
        split = model
        if config.train.amp is not None:
            split = InAmpType(model, device_type=group.device.type, dtype=AMP_TYPES[config.train.amp])
        return DataParallel(split, device_ids=[int(name.removeprefix("cuda:")) for name in config.devices])
    return model


class InAmpType(nn.Module):
    """A model whose automatic mixed precision, where it is on, is of one type in any thread.

    DataParallel has a thread for each device, and hands on to it that autocast is on, but not to which type: that is
    torch's default there, float16, whose small gradients are lost without the loss scaling that bf16 needs none of.
    """

    def __init__(self, model: nn.Module, *, device_type: str, dtype: torch.dtype) -> None:
        super().__init__()
        self.model, self.device_type, self.dtype = model, device_type, dtype

    def forward(self, *inputs: Any, **options: Any) -> Any:
        """Return what the model does."""
        is_on = torch.is_autocast_enabled(self.device_type)
        with torch.autocast(self.device_type, dtype=self.dtype, enabled=is_on):
            return self.model(*inputs, **options)


def accumulating(replica: nn.Module) -> AbstractContextManager[None]:
    """Keep the gradients of a backward pass that no optimizer step follows on their rank: they travel with the last."""
    return replica.no_sync() if isinstance(replica, DistributedDataParallel) else nullcontext()


def hint(config: RunConfig) -> str | None:
    """Return what the user should know about the strategy, if anything."""
    if config.train.strategy != "dp" or len(config.devices) == 1:
        return None
    better = (
        "ddp, a process for each device, is faster, and with sync_bn its BatchNorm normalises over the whole batch; "
        "here each device's normalises its own share, and the first device's statistics are kept"
    )
    if config.simulated:
        return (
            f"strategy: dp splits batches among real CUDA devices only; the {len(config.devices)} simulated ones "
            f"compute as one, in one process on the CPU. On real devices, {better}"
        )
    return f"strategy: {better}"


def refuse_unspawnable(recipe: Recipe, config: RunConfig, environment: RankEnvironment) -> None:
    """Raise ConfigError where our launcher has started several ranks of a recipe that it cannot start.

    Such a recipe needs what our launcher does not give a rank, and training on one of the devices instead of on all is
    not what was asked for.
    """
    if recipe.spawnable or not environment.is_spawned or environment.world_size == 1:
        return
    count = config.local_world_size
    nodes = f"--nnodes {config.nnodes} … " if config.nnodes > 1 else ""
    raise ConfigError(
        f"recipe: {recipe.name!r} cannot be started on several devices by train(device=…) or `python -m trainer`: "
        f"name one device, or let torchrun start the {environment.world_size} ranks: "
        f"`torchrun {nodes}--nproc-per-node {count} -m trainer train.yaml`"
    )
