"""Augmentation: random crops and flips, drawn for each sample in its item, done for a whole batch on the device."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Augmentation:
    """Which changes of `augment` are made to square images, and by how much.

    `draw` belongs into the item, whose generators follow seed, epoch and sample. `apply` takes the drawn numbers of a
    batch and moves whole pixels, so that nothing depends on how samples are batched.
    """

    size: int
    """Height and width of the images, in pixels."""
    crops: bool
    flips: bool

    @classmethod
    def of(cls, augment: Sequence[str], *, size: int) -> "Augmentation":
        """Return what a config's `augment` stands for."""
        return cls(size, crops="random_crop" in augment, flips="horizontal_flip" in augment)

    @property
    def changes_nothing(self) -> bool:
        """Whether there is nothing to draw."""
        return not (self.crops or self.flips)

    def draw(self) -> torch.Tensor:
        """Draw one sample's changes: [3] int64, how many pixels it moves down and right, and 1 where it is mirrored."""
        padding = self.size // 8
        down, right = torch.randint(-padding, padding + 1, (2,)).tolist() if self.crops else (0, 0)
        is_mirrored = int(torch.randint(2, ())) if self.flips else 0
        return torch.tensor([down, right, is_mirrored])

    def apply(self, images: torch.Tensor, changes: torch.Tensor) -> torch.Tensor:
        """Return [N, C, S, S] images (or masks) of any type, changed as [N, 3] `changes` says, by one gather."""
        samples, channels, size, _ = images.shape
        down, right, is_mirrored = changes[:, :, None].unbind(1)
        places = torch.arange(size, device=images.device)
        rows = _reflected(places - down, size)
        columns = _reflected(torch.where(is_mirrored == 1, size - 1 - places, places) - right, size)
        pixels = (rows[:, :, None] * size + columns[:, None, :]).view(samples, 1, size * size)
        gathered = images.flatten(2).gather(2, pixels.expand(samples, channels, size * size))
        return gathered.view(images.shape)


def _reflected(places: torch.Tensor, size: int) -> torch.Tensor:
    """Mirror what lies outside of 0 … size-1 at the edge's pixel, which is not repeated."""
    last = size - 1
    return last - (last - places.abs()).abs()
