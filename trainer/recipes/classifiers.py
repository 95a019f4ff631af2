"""Classifiers: torchvision's image classification models, built for a data set and an image size."""

from collections.abc import Sequence
from typing import Any

import torch
import torchvision.models
from torch import nn
from torchvision.ops import StochasticDepth

from trainer.config import DEFAULT_WEIGHTS, TrainConfig
from trainer.errors import ConfigError


def classifier_names() -> Sequence[str]:
    """Return the names of all of them."""
    names: list[str] = torchvision.models.list_models(module=torchvision.models)
    return names


def build_classifier(config: TrainConfig, *, classes: int) -> nn.Module:
    """Build the one that the config names, with fresh weights. Raises ConfigError."""
    options = _model_options(config)
    try:
        model: nn.Module = torchvision.models.get_model(config.model, weights=None, num_classes=classes, **options)
    except (ValueError, AssertionError) as error:
        raise ConfigError(
            f"model: {config.model} cannot be built for image_size {config.image_size}: {error}"
        ) from error
    if config.dropout is not None:
        set_dropout(model, config)
    _refuse_image_size(model, config)
    return model


def _model_options(config: TrainConfig) -> dict[str, Any]:
    """What some of torchvision's builders need beside the number of classes."""
    if config.model in ("googlenet", "inception_v3"):
        # The auxiliary heads would make the output a tuple; torchvision's own weights want channels scaled otherwise.
        is_pretrained = config.weights == DEFAULT_WEIGHTS
        return {"aux_logits": False, "init_weights": True, "transform_input": is_pretrained}
    if config.model.startswith("vit_"):
        return {"image_size": config.image_size}
    if config.model == "maxvit_t":
        return {"input_size": (config.image_size, config.image_size)}
    return {}


def set_dropout(model: nn.Module, config: TrainConfig) -> None:
    """Give every dropout layer the config's probability; 0 turns all else that drops at random off as well.

    Raises ConfigError where there is no layer to give it to.
    """
    probability = config.dropout or 0.0
    layers = [layer for layer in model.modules() if isinstance(layer, nn.modules.dropout._DropoutNd)]
    if not layers and probability:
        raise ConfigError(f"dropout: {config.model} has no dropout layer; leave dropout out")
    for layer in layers:
        layer.p = probability
    if probability == 0:  # whatever else drops at random is off as well
        for module in model.modules():
            if isinstance(module, StochasticDepth):
                module.p = 0.0
            elif isinstance(module, nn.MultiheadAttention):
                module.dropout = 0.0


def _refuse_image_size(model: nn.Module, config: TrainConfig) -> None:
    """Try the shapes through the model without computing anything (the meta device), to fail with a clear message."""
    state = {name: value.to("meta") for name, value in (*model.named_parameters(), *model.named_buffers())}
    image = torch.empty((1, 3, config.image_size, config.image_size), device="meta")
    try:
        model.eval()
        torch.func.functional_call(model, state, (image,))
    except (RuntimeError, ValueError, AssertionError) as error:
        raise ConfigError(f"image_size: {config.image_size} pixels do not suit {config.model}: {error}") from error
    finally:
        model.train()
