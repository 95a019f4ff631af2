"""A saved checkpoint evaluated anew, on one device and with no run around it: what it says of itself, checked."""

from functools import partial
from pathlib import Path

import torch
from pydantic import ValidationError
from torch import nn
from torch.utils.data import BatchSampler

from trainer.checkpoints import Checkpoint, load_checkpoint, restore_weights
from trainer.config import TrainConfig
from trainer.data.loading import build_loader
from trainer.errors import CheckpointError
from trainer.evaluation import evaluate
from trainer.precision import autocast
from trainer.process_group import ProcessGroup, local_device
from trainer.recipes.recipe import Recipe, TaskData, open_data
from trainer.recipes.registry import build_recipe
from trainer.sampling import ShardSampler


def evaluate_checkpoint(path: Path, *, device: str = "cpu") -> dict[str, float]:
    """Return the metrics of a checkpoint's model on the whole validation set of its own config.

    Raises CheckpointError naming the file, ConfigError or DataError for a config that this host cannot build any more,
    and DeviceError for a device that it does not have.
    """
    checkpoint = load_checkpoint(path, verify_digest=True)
    config = _config_of(path, checkpoint)
    torch_device = local_device(device, simulated=False)
    group = ProcessGroup.alone(torch_device)
    recipe = build_recipe(config)
    data = open_data(recipe, group)
    model = _rebuilt(path, checkpoint, recipe=recipe, config=config, data=data).to(torch_device)
    found = evaluate(
        model,
        build_loader(
            data.val,
            # As a rank of the run did it: the shape of a batch can decide the last bit of a logit.
            BatchSampler(
                ShardSampler(data.val, rank=0, world_size=1), config.batch // checkpoint.world_size, drop_last=False
            ),
            num_workers=0,
            device=torch_device,
            collate=data.collate,
        ),
        recipe=recipe,
        data=data,
        group=group,
        matter="checkpoint",
        autocast=partial(autocast, config, torch_device),
        stop_requested=lambda: False,
        alive=lambda: None,
    )
    assert found is not None, "nobody asks this evaluation to stop"
    return found.metrics


def load_model(path: Path) -> nn.Module:
    """Return a checkpoint's model, built anew by its name: with the checkpoint's weights, on the CPU, in eval mode.

    Raises CheckpointError naming the file, and ConfigError or DataError for a config that cannot be built any more.
    """
    checkpoint = load_checkpoint(path, verify_digest=True)
    config = _config_of(path, checkpoint)
    recipe = build_recipe(config)
    data = open_data(recipe, ProcessGroup.alone(torch.device("cpu")))
    return _rebuilt(path, checkpoint, recipe=recipe, config=config, data=data).eval()


def _rebuilt(path: Path, checkpoint: Checkpoint, *, recipe: Recipe, config: TrainConfig, data: TaskData) -> nn.Module:
    if checkpoint.class_names != data.class_names:
        raise CheckpointError(f"{path}: made for other classes than those of data={config.data!r}")
    model = recipe.build_model(data)
    restore_weights(path, checkpoint.model, model)
    return model


def _config_of(path: Path, checkpoint: Checkpoint) -> TrainConfig:
    try:
        config = TrainConfig.model_validate(checkpoint.config)
    except ValidationError as error:
        raise CheckpointError(f"{path}: its config is of another release: {error}") from error
    if "." in config.model:  # the qualified name of a class; no recipe's registry has such a name
        raise CheckpointError(
            f"{path}: {config.model} is a script's own model, which only that script can build; to load it there: "
            f'net.load_state_dict(torch.load({str(path)!r}, weights_only=True)["model"])'
        )
    return config
