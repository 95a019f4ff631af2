"""Labelled images: what classification trains on, whichever files or formulas the images come from."""

from dataclasses import dataclass

import torch

from trainer.data.decoded import ImageSource


@dataclass(frozen=True)
class LabelledImages:
    """Images and the class of each."""

    images: ImageSource
    labels: torch.Tensor
    """[N] int64, indices of classes."""

    def __post_init__(self) -> None:
        assert len(self.images) == len(self.labels)


@dataclass(frozen=True)
class LabelledData:
    """A data set for classification."""

    class_names: tuple[str, ...]
    train: LabelledImages
    val: LabelledImages
    samples: str
    """As in TaskData."""
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """Both as in TaskData."""
