"""The pixel cache: decoded images in one file that all ranks of a host share, and that is gone when they are."""

import errno
import json
import mmap
import os
import shutil
import sys
import tempfile
import weakref
from contextlib import suppress
from multiprocessing import reduction
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import torch

from trainer.data.known import data_root
from trainer.process_group import ProcessGroup

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_MOST_OF_THE_ROOM = 0.5
"""The share of a disk's free room that the cache may take: checkpoints need some, and so does the job beside ours."""
_GB = 10**9


class PixelCache:
    """Images of [3, S, S] uint8 in the slots of a file, each there once some process of the host has decoded it.

    The file has no name any more: the kernel frees it when the last process that has it open ends, however it ends.
    """

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
        pixels = np.frombuffer(self._mapped, np.uint8, self._image_bytes, begin)
        return torch.from_numpy(pixels.copy()).view(
            3, self._size, self._size
        )  # a copy: whoever gets it may write to it

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
    if budget_gb == 0:
        return None, ""
    if needed > budget_gb * _GB:
        return None, f"{what}, more than cache_gb, {budget_gb:g}: they are decoded anew in each epoch"
    file = _File.create(needed) if group.environment.local_rank == 0 else None
    address = group.share_on_node("pixel_cache", file.address if file is not None else "")
    if file is None and address:
        file = _File.join(address)
    if sys.platform != "linux":  # see _File.create
        group.wait_for_all()
        if file is not None and group.environment.local_rank == 0:
            os.unlink(file.path)
    if file is None:
        return None, f"{what}, and no disk here has twice that room: they are decoded anew in each epoch"
    return PixelCache(file.descriptor, slots=count, size=size), ""


def file_bytes(slots: int, size: int) -> int:
    """Return how large the file is for that many images of `size` by `size` pixels."""
    return _first_byte(slots) + slots * 3 * size * size


def _first_byte(slots: int) -> int:
    """Where the pixels begin: at a page, behind a byte for each slot that says whether it is filled."""
    return -(-slots // mmap.PAGESIZE) * mmap.PAGESIZE


class _File(NamedTuple):
    """A file that is open here."""

    descriptor: int
    path: str

    @classmethod
    def create(cls, length: int) -> Self | None:
        """Create a file of holes where there is room for it, as a host's first rank.

        On Linux it loses its name at once, and the others find it by this process's descriptor: however early a run is
        killed, nothing stays behind. Elsewhere it keeps the name until they have opened it.
        """
        for folder in (data_root(), Path(tempfile.gettempdir())):
            with suppress(OSError):  # a folder that cannot be written to
                folder.mkdir(parents=True, exist_ok=True)
                if length <= shutil.disk_usage(folder).free * _MOST_OF_THE_ROOM:
                    file = cls._unnamed(folder) if sys.platform == "linux" else cls(*tempfile.mkstemp(dir=folder))
                    os.truncate(file.descriptor, length)
                    return file
        return None

    @classmethod
    def _unnamed(cls, folder: Path) -> Self:
        descriptor, path = tempfile.mkstemp(dir=folder)
        os.unlink(path)
        return cls(descriptor, f"/proc/{os.getpid()}/fd/{descriptor}")

    @classmethod
    def join(cls, address: str) -> Self | None:
        """Open the file that the host's first rank has created, or return None where this rank does not see it."""
        path, *identity = json.loads(address)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return None
        file = cls(descriptor, path)
        if file._identity() != identity:  # in a container of its own, a rank finds another file at that path
            os.close(descriptor)
            return None
        return file

    @property
    def address(self) -> str:
        """What the other ranks of the host find it by."""
        return json.dumps([self.path, *self._identity()])

    def _identity(self) -> list[int]:
        status = os.fstat(self.descriptor)
        return [status.st_dev, status.st_ino]


def _handed_over(file: Any, slots: int, size: int) -> PixelCache:
    return PixelCache(file.detach(), slots=slots, size=size)


def _write_all(descriptor: int, content: memoryview, offset: int) -> None:
    while content:
        written = os.pwrite(descriptor, content, offset)
        content, offset = content[written:], offset + written
