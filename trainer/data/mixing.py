"""Mixing: MixUp and CutMix, whose partner and proportions are drawn in a sample's item.

torchvision's own mix the samples of a batch with each other, and so depend on how a device list shares batches out.
Here a sample's partner is any of the training set: the same whatever the batch is.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np
import torch


@dataclass(frozen=True)
class Mixing:
    """MixUp (Zhang et al., ICLR 2018) and CutMix (Yun et al., ICCV 2019); with both, each sample is mixed by one of
    them, drawn evenly."""

    size: int
    """Height and width of the images, in pixels."""
    mixup: float | None
    """Both parameters of the beta distribution that MixUp's proportion is drawn from; None for no MixUp."""
    cutmix: float | None
    """CutMix's likewise."""

    @property
    def changes_nothing(self) -> bool:
        """Whether there is nothing to draw."""
        return self.mixup is None and self.cutmix is None

    def draw(self) -> torch.Tensor:
        """Draw one sample's mix: [6] float32, the weight of its own label, the weight of its own pixels, and left, top,
        right and bottom of the box in which all pixels are the partner's."""
        if self.mixup is not None and (self.cutmix is None or int(torch.randint(2, ())) == 0):
            own = np.random.beta(self.mixup, self.mixup)
            return torch.tensor([own, own, 0, 0, 0, 0], dtype=torch.float32)
        assert self.cutmix is not None
        left, top, right, bottom = self._box(share=1 - np.random.beta(self.cutmix, self.cutmix))
        own = 1 - (right - left) * (bottom - top) / self.size**2
        return torch.tensor([own, 1, left, top, right, bottom], dtype=torch.float32)

    def blend(self, images: torch.Tensor, partners: torch.Tensor, mixes: torch.Tensor) -> torch.Tensor:
        """Return [N, C, S, S] floating-point images, each mixed with its partner as [N, 6] `mixes` says."""
        _, own, left, top, right, bottom = mixes[:, :, None].unbind(1)
        places = torch.arange(images.shape[-1], device=images.device)
        in_columns, in_rows = (left <= places) & (places < right), (top <= places) & (places < bottom)
        is_cut = in_rows[:, None, :, None] & in_columns[:, None, None, :]
        weights = torch.where(is_cut, 0, own[:, :, None, None])
        return images * weights + partners * (1 - weights)

    def _box(self, *, share: float) -> tuple[int, int, int, int]:
        """Return a box around any pixel that takes `share` of the image, less what falls outside of it."""
        x, y = torch.randint(self.size, (2,)).tolist()
        half = int(self.size * sqrt(share) / 2)
        return max(x - half, 0), max(y - half, 0), min(x + half, self.size), min(y + half, self.size)
