"""The files of MNIST and Fashion-MNIST: the IDX format, as it is or gzipped.

Y. LeCun et al., Gradient-Based Learning Applied to Document Recognition, 1998; the format is that of
https://yann.lecun.com/exdb/mnist. H. Xiao et al., Fashion-MNIST, 2017.
"""

import gzip
import struct
import zlib
from math import prod
from pathlib import Path

import numpy as np
import torch

from trainer.data.data_files import open_file
from trainer.data.standard_files import GZIPPED
from trainer.errors import DataError

DIGITS = tuple("0123456789")
CLOTHES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)

_BYTES = 0x08
"""The type code of unsigned bytes, the only one that these data sets have."""


def read_images(images: Path, labels: Path) -> tuple[torch.Tensor, torch.Tensor]:
    """Return images, [N, 1, H, W] uint8, and their labels, [N] int64. Raises DataError naming the file."""
    pixels, numbers = _read(images, dimensions=3), _read(labels, dimensions=1)
    if len(pixels) != len(numbers):
        raise DataError(f"{labels}: {len(numbers)} labels for the {len(pixels)} images of {images.name}")
    if len(pixels) and not pixels[0].numel():
        raise DataError(f"{images}: its images are of {pixels.shape[1]} by {pixels.shape[2]} pixels")
    return pixels[:, None], numbers.long()


def _read(path: Path, *, dimensions: int) -> torch.Tensor:
    """Return the array in an IDX file of bytes."""
    try:
        with open_file(path) as file:
            content = gzip.decompress(file.read()) if path.suffix == GZIPPED else file.read()
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: cannot be read ({error})") from error
    head = 4 + 4 * dimensions
    if len(content) < head or content[:4] != bytes([0, 0, _BYTES, dimensions]):
        raise DataError(f"{path}: not an IDX file of bytes in {dimensions} dimensions")
    shape = struct.unpack(f">{dimensions}I", content[4:head])
    if len(content) - head != prod(shape):
        raise DataError(f"{path}: its head tells of {prod(shape)} bytes, and {len(content) - head} follow; is it cut?")
    return torch.from_numpy(np.frombuffer(content, np.uint8, offset=head).copy()).view(shape)
