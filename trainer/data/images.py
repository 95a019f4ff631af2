"""One image file as pixels: whatever Pillow can read becomes [3, H, W] uint8, upright and in RGB."""

import os
import struct
import zlib
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch
from PIL import Image
from PIL.TiffImagePlugin import TiffImageFile

from trainer.data.data_files import open_file
from trainer.errors import DataError

EXTENSIONS = frozenset(
    {".avif", ".bmp", ".gif", ".jfif", ".jp2", ".jpeg", ".jpg", ".pbm", ".pgm", ".png", ".pnm", ".ppm", ".tga"}
    | {".tif", ".tiff", ".webp"}
)
"""File names that count as images, in lower case."""

# What Pillow's plugins raise on broken files; they parse untrusted bytes and say so in many ways.
BROKEN = (
    OSError,
    SyntaxError,
    ValueError,
    EOFError,
    IndexError,
    KeyError,
    TypeError,
    OverflowError,
    RuntimeError,
    struct.error,
    zlib.error,
    Image.DecompressionBombError,
)

_ENDS = {"JPEG": b"\xff\xd9", "MPO": b"\xff\xd9", "GIF": b";", "PNG": b"\0\0\0\0IEND\xaeB\x60\x82"}
"""How the files of some formats end."""
_ORIENTATION = 0x0112
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
"""What undoes each value of EXIF's Orientation."""
_IMAGE_WIDTH, _IMAGE_LENGTH, _BITS_PER_SAMPLE = 256, 257, 258
"""Tags of TIFF."""


def read_image(path: Path, *, size: int) -> torch.Tensor:
    """Return the image, upright (EXIF), in RGB and resized (bilinear, antialiased), as [3, size, size] uint8.

    More than 8 bits of grey are scaled, not clipped, and rounded after the resize; transparency is dropped; of several
    frames the first is taken. Raises DataError naming the file.
    """
    try:
        with open_file(path) as file, Image.open(file) as image:
            pixels = _pixels(image, size)
    except BROKEN as error:
        raise unreadable(path, error) from error
    return torch.from_numpy(pixels).permute(2, 0, 1).contiguous()


def image_size(path: Path) -> tuple[int, int]:
    """Return the (width, height) in pixels, upright, from the file's head alone. Raises DataError naming the file."""
    try:
        with open_file(path) as file, Image.open(file) as image:
            width, height = image.size
            if isinstance(image, TiffImageFile):  # of which some versions of Pillow tell the upright size here
                width, height = image.tag_v2[_IMAGE_WIDTH], image.tag_v2[_IMAGE_LENGTH]
            turned = image.getexif().get(_ORIENTATION, 1) in (5, 6, 7, 8)
            return (height, width) if turned else (width, height)
    except BROKEN as error:
        raise unreadable(path, error) from error


def check_size(path: Path, size: tuple[int, int]) -> None:
    """Raise DataError for an image, upright, of another height and width: its annotations are of something else."""
    width, height = image_size(path)
    if (height, width) != size:
        turned = ", which it has before EXIF's Orientation turns it upright" if (width, height) == size else ""
        raise DataError(
            f"{_shown(path)}: {width} by {height} pixels, and its annotations are of {size[1]} by {size[0]}{turned}"
        )


def check_ends(path: Path) -> None:
    """Raise DataError for a file that is missing, no image, or cut short; damage in its midst is not looked for.

    A JPEG, PNG or GIF file is known to be whole by its last bytes; any other is decoded.
    """
    try:
        with open_file(path) as file, Image.open(file) as image:
            if not _has_end(file, _ENDS.get(image.format or "")):
                image.load()
    except BROKEN as error:
        raise unreadable(path, error) from error


def _has_end(file: BinaryIO, end: bytes | None) -> bool:
    if end is None:
        return False
    position = file.tell()
    file.seek(-len(end), os.SEEK_END)
    is_there = file.read() == end
    file.seek(position)
    return is_there


def unreadable(path: Path, error: Exception) -> DataError:
    """Say of a file that it cannot be read, and why."""
    return DataError(f"{_shown(path)}: not a readable image ({type(error).__name__}: {error})")


def _shown(path: Path) -> str:
    return os.fsencode(path).decode(errors="backslashreplace")  # no JSON takes a name that is not UTF-8


def _pixels(image: Image.Image, size: int) -> np.ndarray[tuple[int, int, int], np.dtype[np.uint8]]:
    """Return [size, size, 3] uint8."""
    # A JPEG is decoded at a half, a quarter or an eighth of its size where that is large enough: nearly twice as fast,
    # and as near to the original, resized before it was compressed. Of other formats this asks nothing.
    image.draft(None, (size, size))
    image.load()
    # Asked once it is loaded: Pillow turns some formats by itself, and then says that nothing is left to be done.
    turn = _UPRIGHT.get(image.getexif().get(_ORIENTATION, 1))
    is_deep = image.mode.startswith("I;16") or image.mode in ("I", "F")
    resized = (_deep_grey(image) if is_deep else _rgb(image)).resize((size, size), Image.Resampling.BILINEAR)
    if is_deep:
        resized = Image.fromarray(np.rint(np.asarray(resized)).astype(np.uint8)).convert("RGB")
    return np.array(resized if turn is None else resized.transpose(turn))


def _rgb(image: Image.Image) -> Image.Image:
    if image.mode == "P" and "transparency" in image.info:
        image = image.convert("RGBA")  # straight to RGB, Pillow warns and keeps the transparency as a colour
    return image if image.mode == "RGB" else image.convert("RGB")


def _deep_grey(image: Image.Image) -> Image.Image:
    """Return an image of more than 8 bits in mode F, 0 … 255; convert("RGB") would clip it at 255."""
    grey = np.asarray(image)
    low, high = (0, 1) if image.mode == "F" else (0, 2 ** _bits(image) - 1)
    if not (grey.min() >= low and grey.max() <= high):  # said so that NaN is refused as well
        raise ValueError(f"mode {image.mode} with values {grey.min()} to {grey.max()}; {low} to {high} can be read")
    return Image.fromarray(grey.astype(np.float32) * np.float32(255 / high))


def _bits(image: Image.Image) -> int:
    """Return how many bits the values of an integer image have: 16, but for TIFF's of 12, which Pillow leaves small."""
    bits = image.tag_v2.get(_BITS_PER_SAMPLE, (16,)) if isinstance(image, TiffImageFile) else (16,)
    return min(16, *bits)
