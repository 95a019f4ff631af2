"""The data set `synthetic`: patterns of colour that are drawn as they are asked for, with no file and any size.

A class is a pattern of four by four colours. An image shows its class's pattern moved by a random distance, the part
that leaves on one side coming back on the other, under noise: enough to see a model learn, and no harder.
"""

import numpy as np
import torch

from trainer.data.labelled import LabelledData, LabelledImages
from trainer.data.synthetic_options import SyntheticOptions

_VERSION = 1
"""Changes with what is drawn: a checkpoint of other images must not be continued. It also seeds all drawing; a config's
seed has no part in it, since runs of several seeds are compared on one data set."""
_TRAIN, _VAL, _PATTERN = 0, 1, 2
_CELLS = 4
_BRIGHTEST, _NOISE_BITS = 192, 0x3F
"""Colours are below the one and noise is within the other, so their sum is a byte."""


class SyntheticImages:
    """One of its two sets of images, [3, size, size] uint8 each: image i shows class i modulo the number of classes."""

    def __init__(self, count: int, *, classes: int, size: int, stream: int) -> None:
        self.count, self.classes, self.size, self.stream = count, classes, size, stream

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> torch.Tensor:
        pattern = np.random.default_rng((_VERSION, _PATTERN, index % self.classes))
        colours = pattern.integers(0, _BRIGHTEST, (3, _CELLS, _CELLS), dtype=np.uint8)
        image = np.random.default_rng((_VERSION, self.stream, index))
        rows, columns = (
            (np.arange(self.size) + moved) % self.size * _CELLS // self.size
            for moved in image.integers(0, self.size, 2)
        )
        noise = np.frombuffer(image.bytes(3 * self.size * self.size), np.uint8) & _NOISE_BITS
        return torch.from_numpy(colours[:, rows][:, :, columns] + noise.reshape(3, self.size, self.size))


def open_synthetic(options: SyntheticOptions, *, size: int) -> LabelledData:
    """Return the data set with images of `size` by `size` pixels."""

    def drawn(count: int, stream: int) -> LabelledImages:
        images = SyntheticImages(count, classes=options.classes, size=size, stream=stream)
        return LabelledImages(images, torch.arange(count) % options.classes)

    return LabelledData(
        class_names=tuple(map(str, range(options.classes))),
        train=drawn(options.train, _TRAIN),
        val=drawn(options.val, _VAL),
        samples=f"{options.train} train, {options.val} val, synthetic {_VERSION} of {options.classes} classes",
    )
