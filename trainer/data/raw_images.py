"""Raw images: equally large ones that a data set keeps as numbers in one file, held in memory as they are."""

import numpy as np
import torch
from PIL import Image


class RawImages:
    """An ImageSource over [N, C, H, W] uint8, with one channel (grey) or three: resized as image files are."""

    def __init__(self, pixels: torch.Tensor, *, size: int) -> None:
        assert pixels.dtype == torch.uint8
        assert pixels.shape[1] in (1, 3)
        self.pixels, self.size = pixels, size

    def __len__(self) -> int:
        return len(self.pixels)

    def __getitem__(self, index: int) -> torch.Tensor:
        pixels = self.pixels[index].expand(3, -1, -1)
        if pixels.shape[1:] == (self.size, self.size):
            return pixels.clone(memory_format=torch.contiguous_format)
        image = Image.fromarray(pixels.permute(1, 2, 0).numpy())
        resized = image.resize((self.size, self.size), Image.Resampling.BILINEAR)
        return torch.from_numpy(np.array(resized)).permute(2, 0, 1).contiguous()
