"""The workload: what every line of the benchmark trains, and on which images."""

import pickle
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from trainer.data.cifar import read_batches
from trainer.data.known import data_root
from trainer.data.standard_files import STANDARD_FILES
from trainer.data.synthetic import SyntheticImages
from trainer.errors import DataError

_CIFAR10 = STANDARD_FILES["cifar10"]
_TRAIN, _TEST = _CIFAR10.files[:5], _CIFAR10.files[5]
_CLASSES = 10
_WHOLE = 50_000
"""Training images of CIFAR-10; it has a fifth as many more for validation."""

Images = tuple[np.ndarray, list[int]]
"""Images, [N, 3072] uint8, and their labels."""


@dataclass(frozen=True)
class Workload:
    """What is trained."""

    model: str
    """One of torchvision's classifiers."""
    samples: int
    """Training images of 32 by 32 pixels; a fifth as many more are for validation."""
    is_synthetic: bool
    """Whether the images are drawn, those of the data set `synthetic`; else they are CIFAR-10's first ones."""
    epochs: int
    """The first one is not timed: loaders start in it, and libraries choose their kernels."""
    batch: int
    """Global batch."""
    num_workers: int = 2

    @property
    def lr(self) -> float:
        """0.1 for 256 samples, and in proportion (Goyal et al., 2017)."""
        return 0.1 * self.batch / 256

    def __str__(self) -> str:
        of = "drawn images" if self.is_synthetic else "images of CIFAR-10"
        return f"{self.model} on {self.samples} {of}, batch {self.batch}, {self.epochs} epochs"


def write_images(workload: Workload, root: Path) -> Path:
    """Put the workload's images below `root` in the files of CIFAR-10, which both loops read; return their folder.

    Raises DataError where CIFAR-10 is asked for and not on this host.
    """
    if not workload.is_synthetic and workload.samples >= _WHOLE:
        return _published()
    train, test = (_drawn if workload.is_synthetic else _first)(workload.samples)
    folder = root / _CIFAR10.folder
    folder.mkdir(parents=True)
    for number, name in enumerate(_TRAIN):
        _write(folder / name, (train[0][number :: len(_TRAIN)], train[1][number :: len(_TRAIN)]))
    _write(folder / _TEST, test)
    names = [f"class {number}" for number in range(_CLASSES)]
    (folder / "batches.meta").write_bytes(pickle.dumps({"label_names": names}))
    return folder


def _published() -> Path:
    folder = data_root() / _CIFAR10.folder
    try:
        _CIFAR10.refuse_missing(folder)
    except DataError as error:
        raise DataError(f"{error}; or measure on drawn images, with --synthetic") from error
    return folder


def _first(samples: int) -> tuple[Images, Images]:
    folder = _published()
    sets = []
    for names, count in ((_TRAIN, samples), ((_TEST,), _for_validation(samples))):
        images, labels = read_batches([folder / name for name in names], labels="labels")
        sets.append((images[:count].flatten(1).numpy(), labels[:count].tolist()))
    return sets[0], sets[1]


def _drawn(samples: int) -> tuple[Images, Images]:
    train, test = (
        _of(SyntheticImages(count, classes=_CLASSES, size=32, stream=stream))
        for stream, count in enumerate((samples, _for_validation(samples)))
    )
    return train, test


def _of(images: SyntheticImages) -> Images:
    pixels = np.stack([images[index].flatten().numpy() for index in range(len(images))])
    return pixels, [index % _CLASSES for index in range(len(images))]


def _for_validation(samples: int) -> int:
    return max(1, samples // 5)


def _write(path: Path, images: Images) -> None:
    pixels, labels = images
    path.write_bytes(pickle.dumps({"data": np.ascontiguousarray(pixels), "labels": labels}))
