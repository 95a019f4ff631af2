"""Decoded images: what the data sets are built on, files read and resized, or anything else that has images."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

import torch

from trainer.config import TrainConfig
from trainer.data.images import check_ends, check_size, read_image
from trainer.data.pixel_cache import PixelCache, open_cache
from trainer.data.screening import named, screen
from trainer.errors import DataError
from trainer.process_group import ProcessGroup

_WORTH_TELLING_S = 5.0


class ImageSource(Protocol):
    """A sized sequence of images: each [3, S, S] uint8, on the CPU, the caller's own to write into."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> torch.Tensor: ...


class DecodedFiles:
    """The images of files: read, upright, in RGB, resized to [3, size, size] uint8.

    With a cache, each is decoded once by some process of the host; the pixels are the same with it and without.
    """

    def __init__(
        self, paths: Sequence[Path], *, size: int, cache: PixelCache | None, slots: Sequence[int] | None = None
    ) -> None:
        """`slots` are the images' places in the cache, 0, 1, … where they are left out."""
        self.paths = tuple(paths)
        self._size, self._cache = size, cache
        self._slots = range(len(self.paths)) if slots is None else tuple(slots)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> torch.Tensor:
        """Raises DataError naming the file that cannot be read."""
        if self._cache is None:
            return read_image(self.paths[index], size=self._size)
        slot = self._slots[index]
        image = self._cache.read(slot)
        if image is None:
            image = read_image(self.paths[index], size=self._size)
            self._cache.write(slot, image)
        return image


@dataclass(frozen=True)
class OpenedImages:
    """The image files of a run that can be read."""

    sources: tuple[DecodedFiles, ...]
    """Those of each set, in the order in which they were given."""
    broken: frozenset[Path]
    """The files that are left out, the same on every rank."""
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    """What is told at the start of the run."""


def open_images(
    *sets: Sequence[Path], config: TrainConfig, group: ProcessGroup, sizes: Sequence[tuple[int, int]] | None = None
) -> OpenedImages:
    """Open the image files of a run's sets, such as training and validation, behind one cache. Every rank has to call.

    All files are looked at first, by all ranks together; with a cache they are decoded into it, so that the run's
    first epoch has that work behind it. `sizes` are the heights and widths, upright, that annotations say the images of
    all sets have: one of another size counts as broken. Raises DataError naming the broken ones, unless `on_bad_image`
    skips them.
    """
    paths = [path for each in sets for path in each]
    cache, note = open_cache(len(paths), size=config.image_size, budget_gb=config.cache_gb, group=group)
    files = DecodedFiles(paths, size=config.image_size, cache=cache)
    # Where decoding leaves nothing behind, and a broken file ends the run sooner or later anyway, its two ends have to
    # do: a pass over all of a large set is what the cache would have saved.
    decodes = cache is not None or config.on_bad_image == "skip"
    look = partial(_look, files, sizes, decodes=decodes)
    begun_s = time.monotonic()
    broken = screen(len(paths), look, matter="images", num_workers=config.num_workers, group=group)
    took_s = time.monotonic() - begun_s
    count, what = f"{len(broken)} of {len(paths)} images", named(list(broken.values()))
    if broken and config.on_bad_image == "fail":
        raise DataError(f"data: {count} cannot be used (on_bad_image: skip leaves such out): {what}")
    notes = [note] if note else []
    if took_s > _WORTH_TELLING_S:
        notes.append(f"{len(paths)} images {'decoded' if decodes else 'looked at'} in {took_s:.0f} s")
    if cache is not None and group.is_one_node and (kept := cache.filled()) < len(paths) - len(broken):
        notes.append(f"the disk had room for {kept} decoded images: the others are decoded anew in each epoch")
    sources = [
        DecodedFiles([paths[slot] for slot in slots], size=config.image_size, cache=cache, slots=slots)
        for slots in _readable(sets, broken)
    ]
    warnings = (f"data: {count} cannot be used and are left out: {what}",) if broken else ()
    return OpenedImages(tuple(sources), frozenset(paths[slot] for slot in broken), warnings, tuple(notes))


def _look(files: DecodedFiles, sizes: Sequence[tuple[int, int]] | None, index: int, *, decodes: bool) -> None:
    """Raise DataError for a file that is broken, or no image of the size that it should have."""
    if sizes is not None:
        check_size(files.paths[index], sizes[index])
    if decodes:
        files[index]
    else:
        check_ends(files.paths[index])


def _readable(sets: Sequence[Sequence[Path]], broken: Mapping[int, str]) -> list[list[int]]:
    """Return the slots of each set's images, one set after the other, without those of the broken files."""
    found: list[list[int]] = []
    first = 0
    for each in sets:
        slots = range(first, first + len(each))
        readable = [slot for slot in slots if slot not in broken]
        if slots and not readable:
            raise DataError(f"data: none of {len(slots)} images can be read: {named([broken[slot] for slot in slots])}")
        found.append(readable)
        first += len(each)
    return found
