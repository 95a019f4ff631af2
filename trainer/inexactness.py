"""Inexactness: what in a configuration keeps runs on different numbers of ranks from agreeing to rounding."""

from collections.abc import Sequence

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd
from torchvision.ops import StochasticDepth

from trainer.config import TrainConfig
from trainer.freezing import held_batchnorm
from trainer.recipes.recipe import Recipe, wants_sync_bn


def inexactness(
    config: TrainConfig, *, recipe: Recipe, model: nn.Module, devices: Sequence[str], double: bool
) -> tuple[str, ...]:
    """Return a sentence for each thing that lets runs of `config` on one and on several of `devices` differ.

    `model` is the one that the config builds; `double` says that it is to compute in float64. None means that nothing
    is known to make them differ by more than the rounding of sums that are added up in another order.
    """
    of_rounding = () if double else (*_precision(config, devices), *_optimizer(config), *_choices(recipe))
    return (*_batchnorm(config, recipe, model), *_dropout(model), *of_rounding)


def _batchnorm(config: TrainConfig, recipe: Recipe, model: nn.Module) -> tuple[str, ...]:
    held = held_batchnorm(model, config.freeze)
    layers = [name for name, layer in model.named_modules() if isinstance(layer, _BatchNorm) and name not in held]
    if not layers:
        return ()
    if config.strategy == "dp":
        return (
            f'BatchNorm (first: {layers[0]}): with strategy "dp" each device normalises its own share of the batch; '
            'strategy "ddp" with sync_bn normalises the global batch',
        )
    if wants_sync_bn(recipe, config):
        return ()
    return (
        f"BatchNorm (first: {layers[0]}): with sync_bn off each rank normalises its own share of the batch, which is "
        "another model for each number of ranks; sync_bn: true normalises the global batch",
    )


def _dropout(model: nn.Module) -> tuple[str, ...]:
    layers = model.named_modules
    drops = [
        ("dropout", [name for name, layer in layers() if isinstance(layer, _DropoutNd) and layer.p > 0]),
        (
            "dropout of attention weights",
            [name for name, layer in layers() if isinstance(layer, nn.MultiheadAttention) and layer.dropout > 0],
        ),
        ("stochastic depth", [name for name, layer in layers() if isinstance(layer, StochasticDepth) and layer.p > 0]),
    ]
    return tuple(
        f"{what} (first: {names[0]}): its draws differ from rank to rank; dropout: 0 turns it off"
        for what, names in drops
        if names
    )


def _precision(config: TrainConfig, devices: Sequence[str]) -> tuple[str, ...]:
    sentences = [
        "float32: a deep model multiplies rounding at every step, the deeper and the higher lr the more, on one rank "
        "as on several; what differs at the first step already is something else"
    ]
    if config.amp is not None:
        sentences.append(f"amp: {config.amp} keeps about three digits, and sums of other shares round otherwise")
    if devices[0].startswith("cuda"):
        sentences.append(
            "CUDA: kernels are chosen by the shape of each rank's share, some add up in no fixed order, and "
            "convolutions use TF32, which keeps about three digits (NVIDIA_TF32_OVERRIDE=0 turns that off); "
            "--world-sizes 1,1 shows how far two equal runs are apart"
        )
    elif devices[0] == "mps":
        sentences.append('MPS: some kernels add up in no fixed order; device "cpu" has float64')
    return tuple(sentences)


def _optimizer(config: TrainConfig) -> tuple[str, ...]:
    if config.optimizer != "adamw":
        return ()
    return (
        f"adamw divides each gradient by its own size: a weight whose gradient is nothing but rounding (a bias that "
        f"the next layer takes out again) moves by up to lr ({config.lr:g}) a step, in a direction that rounding "
        "chooses; the loss does not depend on such a weight. Go by the losses, or prove it with sgd",
    )


def _choices(recipe: Recipe) -> tuple[str, ...]:
    if recipe.name != "detection":
        return ()
    return (
        "detection: what is sampled, which negatives are the hardest and what NMS keeps are choices; where rounding "
        "tips one, the losses part at once. Prove it in float64",
    )
