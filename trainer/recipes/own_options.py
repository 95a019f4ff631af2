"""The options of our own recipes. Never imports torch: what starts a run checks them."""

from collections.abc import Mapping

from pydantic import Field

from trainer.data.synthetic_options import SyntheticOptions
from trainer.recipes.options import RecipeOptions

_LEAST_PARAMETER, _MOST_PARAMETER = 0.001, 1000
"""Of a beta distribution. Below, hardly a draw is anything but 0 or 1; above, anything but about a half; far beyond,
what it is drawn by underflows or overflows, and it is no number."""


class ClassificationOptions(RecipeOptions):
    """Options of `classification` alone."""

    label_smoothing: float = Field(default=0, ge=0, lt=1)
    """Share of each training target that is spread evenly over all classes (Szegedy et al., CVPR 2016)."""
    mixup: float | None = Field(default=None, ge=_LEAST_PARAMETER, le=_MOST_PARAMETER)
    """Mix each training image and its target with another's, by a share drawn from Beta(x, x) with this x (MixUp, Zhang
    et al., ICLR 2018)."""
    cutmix: float | None = Field(default=None, ge=_LEAST_PARAMETER, le=_MOST_PARAMETER)
    """Put a box of another image into each training image, of an area drawn from Beta(x, x) with this x, and mix the
    targets alike (CutMix, Yun et al., ICCV 2019). With `mixup` as well, each image gets one of the two."""
    randaugment: int | None = Field(default=None, ge=0, le=30)
    """Change each training image by `randaugment_ops` operations of this magnitude, of torchvision's 14 (RandAugment,
    Cubuk et al., 2020; 9 is usual)."""
    randaugment_ops: int = Field(default=2, ge=1, le=14)
    """Operations of `randaugment`, one after the other."""
    synthetic: SyntheticOptions = SyntheticOptions()
    """How large the data set `synthetic` is: `classes`, `train` and `val` images."""


class DenseOptions(RecipeOptions):
    """Options of segmentation and detection, whose images are few and batches small."""

    bn_momentum: float | None = Field(default=None, gt=0, le=1)
    """How fast the statistics that BatchNorm validates with follow those of the batches; left out, each layer's own.
    torchvision's MobileNets have 0.01 and 0.03, with which a model that begins with fresh weights validates badly for
    its first few hundred steps: in a shorter training take 0.1."""


class SegmentationOptions(DenseOptions):
    """Options of `segmentation` alone."""

    aux_loss: float = Field(default=0, ge=0, le=10)
    """Weight of the loss of an auxiliary head, which `fcn_…` and `deeplabv3_…` can have, beside the main one; 0.5 is
    usual. With 0 there is none."""


class DetectionOptions(DenseOptions):
    """Options of `detection` alone."""


OWN_OPTIONS: Mapping[str, type[RecipeOptions]] = {
    "classification": ClassificationOptions,
    "segmentation": SegmentationOptions,
    "detection": DetectionOptions,
}
"""By the recipe's name."""
