"""One image file as a tensor: whatever Pillow can read becomes [3, H, W] float32 in 0 … 1."""

import struct
import zlib
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps

from trainer.errors import DataError

EXTENSIONS = frozenset({".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"})
"""File names that count as images, in lower case."""

# What Pillow's plugins raise on broken files; they parse untrusted bytes and say so in many ways.
_BROKEN = (
    OSError,
    SyntaxError,
    ValueError,
    EOFError,
    IndexError,
    struct.error,
    zlib.error,
    Image.DecompressionBombError,
)


def read_image(path: Path) -> torch.Tensor:
    """Return the image, upright (EXIF) and in RGB, as [3, H, W] float32 in 0 … 1.

    16-bit grey values are scaled, not clipped; transparency is dropped. Raises DataError naming the file.
    """
    try:
        with Image.open(path) as image:
            # Pillow turns RGB only for display; its copy is of no use for 16-bit pixels, so it comes first.
            upright = ImageOps.exif_transpose(image)
            pixels = _pixels(upright)
    except _BROKEN as error:
        raise DataError(f"{path}: not a readable image ({type(error).__name__}: {error})") from error
    return torch.from_numpy(pixels).permute(2, 0, 1).contiguous()


def _pixels(image: Image.Image) -> np.ndarray[tuple[int, int, int], np.dtype[np.float32]]:
    """Return [H, W, 3] float32 in 0 … 1."""
    if image.mode.startswith("I;16") or image.mode in ("I", "F"):
        grey = _deep_grey(image)
        return np.repeat(grey[:, :, np.newaxis], 3, axis=2)
    if image.mode == "P" and "transparency" in image.info:
        image = image.convert("RGBA")  # straight to RGB, Pillow warns and keeps the transparency as a colour
    return np.asarray(image.convert("RGB"), dtype=np.float32) / np.float32(255)


def _deep_grey(image: Image.Image) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """Return [H, W] float32 in 0 … 1 of an image with more than 8 bits; convert("RGB") would clip it at 255."""
    grey = np.asarray(image)
    low, high = (0, 1) if image.mode == "F" else (0, 65535)
    if grey.min() < low or grey.max() > high:
        raise ValueError(f"mode {image.mode} with values {grey.min()} to {grey.max()}; {low} to {high} can be read")
    return grey.astype(np.float32) / np.float32(high)
