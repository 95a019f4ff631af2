"""The pixel cache: decoded images in one file that all ranks of a host share, and that is gone when they are."""

import errno
import mmap
import os
import weakref
from multiprocessing import reduction
from typing import Any

import numpy as np
import torch

from trainer.data.shared_file import open_shared
from trainer.process_group import ProcessGroup

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_GB = 10**9


class PixelCache:
    """Images of [3, S, S] uint8 in the slots of a file, each there once some process of the host has decoded it."""

    def __init__(self, descriptor: int, *, slots: int, size: int) -> None:
        """Take over an open file of `file_bytes` bytes."""
        self._descriptor, self._slots, self._size = descriptor, slots, size
        self._first, self._image_bytes = _first_byte(slots), 3 * size * size
        self._has_room = True
        self._mapped = mmap.mmap(descriptor, file_bytes(slots, size), prot=mmap.PROT_READ)
        weakref.finalize(self, os.close, descriptor)

    def read(self, slot: int) -> torch.Tensor | None:
        """Return the image of a slot, or None where there is none yet."""
        if not self._mapped[slot]:
            return None
        begin = self._first + slot * self._image_bytes
        pixels = np.frombuffer(self._mapped, np.uint8, self._image_bytes, begin).copy()  # which others may write to
        return torch.from_numpy(pixels).view(3, self._size, self._size)

    def write(self, slot: int, image: torch.Tensor) -> None:
        """Keep an image, if the disk has room for it still.

        By a call, not by the mapping: on a full disk that fails, where a mapped page would end the process. Two
        processes may write one slot at once, since they write the same bytes.
        """
        if not self._has_room:
            return
        try:
            _write_all(self._descriptor, image.numpy().data.cast("B"), self._first + slot * self._image_bytes)
            os.pwrite(self._descriptor, b"\1", slot)  # only now: whoever sees it finds all of the pixels
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            self._has_room = False

    def filled(self) -> int:
        """Return how many slots have their image."""
        return self._mapped[: self._slots].count(1)

    def __reduce__(self) -> tuple[object, ...]:
        """Hand the open file to a loader process that is spawned; a forked one has it already."""
        return _handed_over, (reduction.DupFd(self._descriptor), self._slots, self._size)


def open_cache(count: int, *, size: int, budget_gb: float, group: ProcessGroup) -> tuple[PixelCache | None, str]:
    """Open the cache that the ranks of a host share, for `count` images of `size` by `size` pixels.

    Every rank has to call it. Returns None where there is none to be had, and what is to be told of that.
    """
    needed = file_bytes(count, size)
    what = f"{count} images of {size} by {size} pixels take {needed / _GB:.3g} GB decoded"
    if budget_gb == 0 or count == 0:
        return None, ""
    if needed > budget_gb * _GB:
        return None, f"{what}, more than cache_gb, {budget_gb:g}: they are decoded anew in each epoch"
    descriptor = open_shared(needed, matter="pixel_cache", group=group)
    if descriptor is None:
        return None, f"{what}, and no disk here has twice that room: they are decoded anew in each epoch"
    return PixelCache(descriptor, slots=count, size=size), ""


def file_bytes(slots: int, size: int) -> int:
    """Return how large the file is for that many images of `size` by `size` pixels."""
    return _first_byte(slots) + slots * 3 * size * size


def _first_byte(slots: int) -> int:
    """Where the pixels begin: at a page, behind a byte for each slot that says whether it is filled."""
    return -(-slots // mmap.PAGESIZE) * mmap.PAGESIZE


def _handed_over(file: Any, slots: int, size: int) -> PixelCache:
    return PixelCache(file.detach(), slots=slots, size=size)


def _write_all(descriptor: int, content: memoryview, offset: int) -> None:
    while content:
        written = os.pwrite(descriptor, content, offset)
        content, offset = content[written:], offset + written
