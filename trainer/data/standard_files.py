"""Standard files: the data sets that are known by the files they are published in, and whether those are on this host.

Nothing is downloaded. Importing this loads no torch; what is in the files is read by trainer.data.cifar and
trainer.data.mnist.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from trainer.errors import DataError

GZIPPED = ".gz"


@dataclass(frozen=True)
class StandardFiles:
    """A data set's files."""

    title: str
    folder: str
    """Where they are below a data root: as the published archive, or torchvision, lays them out."""
    files: tuple[str, ...]
    may_be_gzipped: bool
    source: str
    """What to get them from."""

    def missing(self, folder: Path) -> list[str]:
        """Return the files that are not in a folder."""
        return [name for name in self.files if self.file(folder, name) is None]

    def file(self, folder: Path, name: str) -> Path | None:
        """Return the path of a file, as it is or gzipped; None where it is neither."""
        endings = ("", GZIPPED) if self.may_be_gzipped else ("",)
        return next((path for ending in endings if os.path.isfile(path := folder / (name + ending))), None)

    def refuse_missing(self, folder: Path) -> None:
        """Raise DataError that names the files that are not there."""
        if missing := self.missing(folder):
            raise DataError(
                f"data: {self.title} is not on this host: {folder} lacks {', '.join(missing)}. Nothing is downloaded: "
                f"put there the files of {self.source}, or give the path of the folder that has them as data"
            )


_MNIST_FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)

STANDARD_FILES = {
    "cifar10": StandardFiles(
        "CIFAR-10",
        "cifar-10-batches-py",
        (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch", "batches.meta"),
        may_be_gzipped=False,
        source="cifar-10-python.tar.gz (https://www.cs.toronto.edu/~kriz/cifar.html)",
    ),
    "cifar100": StandardFiles(
        "CIFAR-100",
        "cifar-100-python",
        ("train", "test", "meta"),
        may_be_gzipped=False,
        source="cifar-100-python.tar.gz (https://www.cs.toronto.edu/~kriz/cifar.html)",
    ),
    "mnist": StandardFiles(
        "MNIST",
        "MNIST/raw",
        _MNIST_FILES,
        may_be_gzipped=True,
        source="MNIST (train-images-idx3-ubyte.gz and so on, gzipped or not)",
    ),
    "fashion_mnist": StandardFiles(
        "Fashion-MNIST",
        "FashionMNIST/raw",
        _MNIST_FILES,
        may_be_gzipped=True,
        source="Fashion-MNIST (https://github.com/zalandoresearch/fashion-mnist, gzipped or not)",
    ),
}


def recognized(folder: Path) -> str | None:
    """Return the name of the data set whose files a folder has, if it is one of these.

    Some of the files are enough where there is no folder beside them: then they can be nothing else, and the others can
    be asked for. Fashion-MNIST calls its files as MNIST does: it is told by `fashion` in the name of the folder or of
    the one above.
    """
    missing = {name: len(standard.missing(folder)) for name, standard in STANDARD_FILES.items()}
    # Unlike scandir, this takes a link to itself for no folder, and a folder that cannot be listed for an empty one.
    _, folders, _ = next(os.walk(folder), ("", [], []))
    if folders:
        found = [name for name, count in missing.items() if count == 0]
    else:
        found = [name for name, count in missing.items() if count < len(STANDARD_FILES[name].files)]
    if "mnist" in found:
        return "fashion_mnist" if any("fashion" in part.lower() for part in folder.absolute().parts[-2:]) else "mnist"
    return min(found, key=missing.__getitem__, default=None)
