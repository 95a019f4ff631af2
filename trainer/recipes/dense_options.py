"""Dense options: what segmentation and detection have in common, whose images are few and batches small."""

from pydantic import Field
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from trainer.recipes.recipe import RecipeOptions


class DenseOptions(RecipeOptions):
    """Options of both recipes."""

    bn_momentum: float | None = Field(default=None, gt=0, le=1)
    """How fast the statistics that BatchNorm validates with follow those of the batches; left out, each layer's own.
    torchvision's MobileNets have 0.01 and 0.03, with which a model that begins with fresh weights validates badly for
    its first few hundred steps: in a shorter training take 0.1."""


def set_momentum(model: nn.Module, options: DenseOptions) -> None:
    """Give every BatchNorm layer the momentum that the options name, if they do."""
    if options.bn_momentum is not None:
        for layer in model.modules():
            if isinstance(layer, _BatchNorm):
                layer.momentum = options.bn_momentum
