"""The pixel cache: decoded images in one file that all ranks of a host share, and that is gone when they are."""

import errno
import mmap
import os
import weakref
from multiprocessing import reduction
from typing import Any

import torch

from trainer.data.shared_file import open_shared
from trainer.process_group import ProcessGroup

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FILLED = b"\1"
"""The byte of a slot that has its image; a hole reads as zeros."""
_GB = 10**9


class PixelCache:
    """Images of [3, S, S] uint8 in the slots of a file, each there once some process of the host has decoded it.

    The file is read and written by calls, never by a mapping: where a disk is full or fails, a call says so, and a
    mapped page ends the process. In a tmpfs even a look at a hole of a mapping takes a page that may not be there.
    """

    def __init__(self, descriptor: int, *, slots: int, size: int) -> None:
        """Take over an open file of `file_bytes` bytes."""
        self._descriptor, self._slots, self._size = descriptor, slots, size
        self._first, self._image_bytes = _first_byte(slots), 3 * size * size
        self._has_room = True
        weakref.finalize(self, os.close, descriptor)

    def read(self, slot: int) -> torch.Tensor | None:
        """Return the image of a slot, or None where there is none yet."""
        if os.pread(self._descriptor, 1, slot) != _FILLED:
            return None
        image = torch.empty((3, self._size, self._size), dtype=torch.uint8)
        count = os.preadv(self._descriptor, [image.numpy().data], self._first + slot * self._image_bytes)
        return image if count == self._image_bytes else None  # a call may read less; then it is decoded anew

    def write(self, slot: int, image: torch.Tensor) -> None:
        """Keep an image, if the disk has room for it still.

        Two processes may write one slot at once, since they write the same bytes.
        """
        if not self._has_room:
            return
        try:
            _write_all(self._descriptor, image.numpy().data.cast("B"), self._first + slot * self._image_bytes)
            os.pwrite(self._descriptor, _FILLED, slot)  # only now: whoever sees it finds all of the pixels
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            self._has_room = False

    def filled(self) -> int:
        """Return how many slots have their image."""
        return os.pread(self._descriptor, self._slots, 0).count(_FILLED)

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
