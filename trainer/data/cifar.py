"""The files of CIFAR-10 and CIFAR-100, in their version for Python: pickles, read without running any code.

A. Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009; https://www.cs.toronto.edu/~kriz/cifar.html
"""

import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from trainer.data.data_files import open_file
from trainer.errors import DataError

_SHAPE = (3, 32, 32)


def read_batches(paths: Sequence[Path], *, labels: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the images of batch files, [N, 3, 32, 32] uint8, and their labels, [N] int64.

    `labels` is what a file calls them. Raises DataError naming the file.
    """
    batches = [_read_batch(path, labels) for path in paths]
    return torch.cat([images for images, _ in batches]), torch.cat([numbers for _, numbers in batches])


def read_names(path: Path, key: str) -> tuple[str, ...]:
    """Return the names of the classes. Raises DataError naming the file."""
    names = _read(path).get(key)
    if not isinstance(names, list) or not names:
        raise DataError(f"{path}: there are no class names in it ({key})")
    return tuple(name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name) for name in names)


def _read_batch(path: Path, key: str) -> tuple[torch.Tensor, torch.Tensor]:
    content = _read(path)
    labels, pixels = content.get(key), content.get("data")
    if not isinstance(labels, list) or not all(map(_is_label, labels)):
        raise DataError(f"{path}: there are no labels in it ({key})")
    if not isinstance(pixels, _Array) or pixels.shape != (len(labels), 3072):
        raise DataError(f"{path}: there are no images of 3072 bytes for its {len(labels)} labels in it (data)")
    images = torch.from_numpy(np.frombuffer(pixels.content, np.uint8).copy())
    return images.view(-1, *_SHAPE), torch.tensor(labels, dtype=torch.int64)


def _is_label(label: object) -> bool:
    return type(label) is int and label.bit_length() < 63  # Python's integers know no bounds


def _read(path: Path) -> dict[str, Any]:
    """Return the dictionary that a file holds."""
    try:
        with open_file(path) as file:
            # Python 2 wrote them, and what it calls a string may be text or bytes.
            content = _Unpickler(file, encoding="bytes").load()
    except Exception as error:  # broken bytes fail in any part of what they ask for
        raise DataError(f"{path}: not a batch of CIFAR's version for Python ({error})") from error
    if not isinstance(content, dict):
        raise DataError(f"{path}: not a batch of CIFAR's version for Python (a {type(content).__name__})")
    return {key.decode("utf-8", "replace") if isinstance(key, bytes) else str(key): content[key] for key in content}


class _Array:
    """What is unpickled in place of a NumPy array: its bytes, as long as they are nothing but bytes."""

    shape: tuple[int, ...] = ()
    content = b""

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _version, shape, kind, is_in_columns, content = state
        if is_in_columns or not isinstance(kind, _Kind) or kind.name not in ("u1", b"u1"):
            raise pickle.UnpicklingError("an array that is not of bytes, row by row")
        if not isinstance(content, bytes) or len(content) != np.prod(shape):
            raise pickle.UnpicklingError(f"an array of shape {shape} that holds something else")
        self.shape, self.content = tuple(shape), content


class _Kind:
    """What is unpickled in place of a NumPy dtype."""

    def __init__(self, name: Any) -> None:
        self.name = name

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        """Byte order and alignment say nothing about bytes."""


class _Unpickler(pickle.Unpickler):
    """Makes what the files of CIFAR consist of, and nothing else: a pickle may ask for any function of any module."""

    def find_class(self, module: str, name: str) -> Callable[..., Any]:
        """Return what stands for a global name, made anew each time: a pickle may also change what it got."""
        match module.replace("numpy._core", "numpy.core"), name:
            case "numpy.core.multiarray", "_reconstruct":
                return lambda *_: _Array()
            case "numpy", "ndarray":
                return lambda: None  # only handed on to _reconstruct
            case "numpy", "dtype":
                return lambda kind, *_: _Kind(kind)
            case "_codecs", "encode":  # Python 3's way to write bytes for Python 2
                return lambda text, _encoding: text.encode("latin1")
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")
