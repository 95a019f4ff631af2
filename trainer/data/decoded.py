"""Decoded images: what the data sets are built on, files read and resized, or anything else that has images."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch

from trainer.config import TrainConfig
from trainer.data.images import check_ends, read_image
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


def open_images(*sets: Sequence[Path], config: TrainConfig, group: ProcessGroup) -> OpenedImages:
    """Open the image files of a run's sets, such as training and validation, behind one cache. Every rank has to call.

    All files are looked at first, by all ranks together; with a cache they are decoded into it, so that the run's
    first epoch has that work behind it. Raises DataError naming the broken ones, unless `on_bad_image` skips them.
    """
    paths = [path for each in sets for path in each]
    cache, note = open_cache(len(paths), size=config.image_size, budget_gb=config.cache_gb, group=group)
    files = DecodedFiles(paths, size=config.image_size, cache=cache)
    begun_s = time.monotonic()
    reasons = screen(
        len(paths), _look(files, cache, config), matter="images", num_workers=config.num_workers, group=group
    )
    took_s = time.monotonic() - begun_s
    if reasons and config.on_bad_image == "fail":
        raise DataError(
            f"data: {len(reasons)} of {len(paths)} images cannot be read (on_bad_image: skip leaves such out): "
            f"{named(list(reasons.values()))}"
        )
    slots = _by_set(sets)
    kept = [[slot for slot in of_set if slot not in reasons] for of_set in slots]
    for before, after in zip(slots, kept, strict=True):
        if before and not after:
            raise DataError(f"data: none of {len(before)} images can be read: {named(list(reasons.values()))}")
    left_out = f"data: {len(reasons)} of {len(paths)} images cannot be read and are left out: "
    return OpenedImages(
        sources=tuple(
            DecodedFiles([paths[slot] for slot in of_set], size=config.image_size, cache=cache, slots=of_set)
            for of_set in kept
        ),
        broken=frozenset(paths[index] for index in reasons),
        warnings=(left_out + named(list(reasons.values())),) if reasons else (),
        notes=tuple(filter(None, (note, _told(len(paths), took_s, cache)))),
    )


def _by_set(sets: Sequence[Sequence[Path]]) -> list[range]:
    """Return the slots of each set's images: one set after the other."""
    slots, first = [], 0
    for each in sets:
        slots.append(range(first, first + len(each)))
        first += len(each)
    return slots


def _look(files: DecodedFiles, cache: PixelCache | None, config: TrainConfig) -> Callable[[int], object]:
    """Return how to look at a file.

    Where nothing is kept of decoding it, and a broken one ends the run sooner or later anyway, its two ends have to do:
    a whole pass over a large set is what the cache would have saved.
    """
    if cache is not None or config.on_bad_image == "skip":
        return files.__getitem__
    return lambda index: check_ends(files.paths[index])


def _told(count: int, took_s: float, cache: PixelCache | None) -> str:
    what = "decoded" if cache is not None else "looked at"
    return f"{count} images {what} in {took_s:.0f} s" if took_s > _WORTH_TELLING_S else ""
