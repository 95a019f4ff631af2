"""Weights to begin with: torchvision's pretrained ones or those of a file, as far as they fit the model."""

import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
import torch.hub
import torchvision.models
from torch import nn

from trainer.checkpoints import non_finite
from trainer.config import DEFAULT_WEIGHTS, TrainConfig
from trainer.errors import ConfigError
from trainer.process_group import ProcessGroup

_WRAPPERS = ("model", "state_dict", "model_state_dict")
"""Where programs put the weights in what they save; `model` is our own checkpoints' place."""
_PREFIXES = ("module.", "_orig_mod.", "model.")
"""What DistributedDataParallel, torch.compile and modules around a model put before its names."""
_OLD_DENSENET = re.compile(r"(denselayer\d+\.(?:norm|conv))\.([12]\.)")
"""Torchvision's files for DenseNet are from before Python forbade a dot in a module's name."""
_COUNTER = "num_batches_tracked"
"""BatchNorm's, which files of old releases of torch lack and nobody misses."""
_NAMES_SHOWN = 8


def begin_with(
    model: nn.Module, config: TrainConfig, group: ProcessGroup, *, brought: Path | None = None
) -> tuple[str, ...]:
    """Put the weights that the config names into a model, still on the CPU; return what the user should know of it.

    `brought` is a file that comes before those. What has no counterpart of its name and shape stays as it is. Raises
    ConfigError for weights that are not there, cannot be read, are no finite numbers, or of which nothing fits.
    """
    named = config.weights if brought is None else str(brought)
    if named is None:
        return ()
    if named == DEFAULT_WEIGHTS:
        source, tensors = f"torchvision's {config.model}", _pretrained(config.model, group)
    else:
        source, tensors = named, read_weights(Path(os.path.expanduser(named)))
    own = model.state_dict()
    by_name = {_own_name(name, own): tensor for name, tensor in tensors.items()}
    for name, tensor in by_name.items():
        if name in own and (flaw := _flaw(tensor, own[name])) is not None:
            raise ConfigError(f"weights: {name} of {source} {flaw}; the model has dense {own[name].dtype} there")
    fitting = {name: tensor for name, tensor in by_name.items() if name in own and own[name].shape == tensor.shape}
    if all(name.endswith(_COUNTER) for name in fitting):
        raise ConfigError(
            f"weights: nothing in {source} has the name and shape of anything in {config.model}: "
            f"it holds {_listed(tensors)}; the model has {_listed(own)}"
        )
    never_finite = non_finite(model)  # as it was built: an attention mask, not a weight
    model.load_state_dict(fitting, strict=False)
    if ruined := [name for name in non_finite(model) if name not in never_finite]:
        raise ConfigError(f"weights: not all numbers are finite in {_listed(ruined)} of {source}")
    fresh = [name for name in own if name not in fitting and not name.endswith(_COUNTER)]
    if not fresh:
        return ()
    of_other_shape = [name for name in fresh if name in by_name]
    why = "has them in another shape" if len(of_other_shape) == len(fresh) else "lacks them or has another shape there"
    return (
        f"weights: {len(own) - len(fresh)} of {len(own)} tensors are from {source}; {_listed(fresh)} stay fresh, since "
        f"it {why}",
    )


def read_weights(path: Path) -> dict[str, torch.Tensor]:
    """Return the tensors by name of a file: a state dict, one of our checkpoints, or another program's.

    It runs no code of the file. Raises ConfigError naming it.
    """
    if not os.path.isfile(path):  # unlike pathlib's own, it raises nothing
        raise ConfigError(f"weights: there is no file {path}")
    try:
        payload: Any = torch.load(path, map_location="cpu", weights_only=True)
    except MemoryError:
        raise
    except Exception as error:
        reason = str(error).strip().splitlines()
        raise ConfigError(
            f"weights: {path} is not a readable file of weights ({type(error).__name__}: {reason[0] if reason else ''})"
        ) from error
    if isinstance(payload, dict):
        inner = next((payload[key] for key in _WRAPPERS if isinstance(payload.get(key), dict)), payload)
        tensors = {
            name: tensor for name, tensor in inner.items() if isinstance(name, str) and isinstance(tensor, torch.Tensor)
        }
        if tensors:
            return tensors
    raise ConfigError(f"weights: {path} holds no tensors by name; save model.state_dict() to have some")


def _pretrained(name: str, group: ProcessGroup) -> dict[str, torch.Tensor]:
    """Return torchvision's best weights for a model, from the host's cache.

    The first rank of a host downloads what is missing there; the others wait for it.
    """
    try:
        weights = getattr(torchvision.models.get_model_weights(name), "DEFAULT", None)
    except ValueError:
        weights = None
    if weights is None:
        raise ConfigError(
            f"weights: torchvision has no pretrained weights for {name}; leave weights out or name a file"
        )
    is_first = group.environment.local_rank == 0
    if not is_first:
        group.share_on_node("weights", "")
    try:
        tensors: dict[str, torch.Tensor] = weights.get_state_dict(
            progress=False, check_hash=True, weights_only=True, map_location="cpu"
        )
    except (OSError, RuntimeError, EOFError, UnpicklingError) as error:  # no network, no room, a damaged file
        cache = Path(torch.hub.get_dir(), "checkpoints")
        raise ConfigError(
            f"weights: {weights.url} cannot be had, from there or from the cache {cache} ({error}); bring it there by "
            "hand, or name another file"
        ) from error
    if is_first:
        group.share_on_node("weights", "")
    return tensors


def _flaw(tensor: torch.Tensor, own: torch.Tensor) -> str | None:
    """Return what keeps a tensor of a file from being copied into the model's own, other than its shape."""
    if tensor.is_meta:
        return "has no content (device meta)"
    if tensor.is_nested or tensor.layout != torch.strided:
        return f"is not dense ({'nested' if tensor.is_nested else tensor.layout})"
    if tensor.is_quantized or (tensor.is_complex() and not own.is_complex()):
        return f"is of {tensor.dtype}"
    return None


def _own_name(name: str, own: Collection[str]) -> str:
    """Return what the model calls a tensor of a file, if it has it."""
    while name not in own and name.startswith(_PREFIXES):
        name = name.partition(".")[2]
    return name if name in own else _OLD_DENSENET.sub(r"\1\2", name)


def _listed(names: Collection[str] | Mapping[str, Any]) -> str:
    shown = ", ".join(list(names)[:_NAMES_SHOWN])
    return f"{shown}, … ({len(names)})" if len(names) > _NAMES_SHOWN else shown
