"""Masks: the class of each pixel of a scene, 0 where it is background and VOID where nobody can tell."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from trainer.data.data_files import open_file
from trainer.data.images import BROKEN, unreadable
from trainer.data.scenes import VOID, Scene, Shape
from trainer.errors import DataError


def draw_mask(scene: Scene, *, size: int) -> torch.Tensor:
    """Return the classes of a scene's pixels, [size, size] uint8: its labels from 1 on, resized to the nearest pixel.

    Where objects overlap, the smaller one is in front: it would be hidden otherwise. Crowds are VOID but where an
    object stands before them. Raises DataError naming a mask's file that cannot be read.
    """
    pixels = read_mask(scene.mask) if scene.mask is not None else _drawn(scene)
    resized = Image.fromarray(pixels).resize((size, size), Image.Resampling.NEAREST)
    return torch.from_numpy(np.array(resized))


def read_mask(path: Path) -> NDArray[np.uint8]:
    """Return the values of a palette or grey image's pixels, [H, W]. Raises DataError naming the file."""
    try:
        with open_file(path) as file, Image.open(file) as image:
            if image.mode in ("P", "L"):
                return np.array(image, dtype=np.uint8)
            mode = image.mode
    except FileNotFoundError as error:
        raise DataError(f"data: mask {path} is missing") from error
    except BROKEN as error:
        raise unreadable(path, error) from error
    raise DataError(f"data: {path}: a mask is a palette or grey image of 8 bits, and this one has mode {mode}")


def _drawn(scene: Scene) -> NDArray[np.uint8]:
    pixels = np.zeros(scene.size, dtype=np.uint8)
    # Crowds first, then objects from the largest on.
    order = np.lexsort((-scene.areas, ~scene.is_crowd))
    for index in order:
        covered = _covered(scene.shapes[index], scene.size)
        pixels[covered] = VOID if scene.is_crowd[index] else scene.labels[index] + 1
    return pixels


def _covered(shape: Shape, size: tuple[int, int]) -> NDArray[np.bool_]:
    """Return which pixels of [H, W] a shape covers, by COCO's rule."""
    from pycocotools import mask as run_lengths  # takes a while to import, and most runs have no outlines

    encoded: Any = shape.run_lengths
    if encoded is None:
        # Fewer than three points have no area, and it would take four numbers for a box.
        polygons = [polygon.ravel().tolist() for polygon in shape.polygons if len(polygon) >= 3]
        encoded = run_lengths.merge(run_lengths.frPyObjects(polygons, *size)) if polygons else None
    elif isinstance(encoded["counts"], list):
        encoded = run_lengths.frPyObjects(encoded, *size)
    if encoded is None:
        return np.zeros(size, dtype=np.bool_)
    with warnings.catch_warnings():
        # pycocotools 2.0.11 says `copy=False` to NumPy in a way that NumPy 2 warns of.
        warnings.filterwarnings("ignore", message="__array__ implementation", category=DeprecationWarning)
        covered: NDArray[np.bool_] = run_lengths.decode(encoded).astype(np.bool_)
    return covered
