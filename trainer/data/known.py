"""The data sets that are known by name, and where a config's `data` lies. Never imports torch."""

import os
from dataclasses import dataclass
from pathlib import Path

from trainer.data.standard_files import STANDARD_FILES
from trainer.errors import ConfigError

DATA_ROOT_VARIABLE = "RANKZERO_DATA_ROOT"
"""Environment variable: the folder that known data sets are kept in, instead of the user's cache."""


@dataclass(frozen=True)
class KnownData:
    """A data set that needs no path: labelled images, for the recipe `classification`."""

    description: str


KNOWN_DATA = {
    "digits": KnownData("1797 handwritten digits, 8 by 8 grey, 10 classes (scikit-learn's)"),
    "synthetic": KnownData(
        "Patterns of colour under noise, drawn as they are asked for; 10 classes and 2000 training images, or as "
        "options.synthetic says"
    ),
    **{
        name: KnownData(f"{files.title}, from its files in {files.folder} below the data root")
        for name, files in STANDARD_FILES.items()
    },
}


def refuse_missing_files(name: str) -> None:
    """Raise DataError for a known data set whose files are not on this host."""
    if files := STANDARD_FILES.get(name):
        files.refuse_missing(data_root() / files.folder)


def data_path(name: str) -> Path:
    """Return the path that is meant by what is no known name, `~` expanded. Raises ConfigError for a bare name."""
    if name in KNOWN_DATA:
        raise ConfigError(f"data: {name!r} is a set of labelled images, for the recipe classification; give a folder")
    path = os.path.expanduser(name)  # pathlib's own raises for a user whom it does not know
    if os.sep not in path and path not in (".", ".."):
        raise ConfigError(
            f"data: {name!r} is no known data set (known: {', '.join(KNOWN_DATA)}); write a folder as a path, ./{name}"
        )
    return Path(path)


def data_root() -> Path:
    """Return the folder that known data sets are kept in."""
    if chosen := os.environ.get(DATA_ROOT_VARIABLE):
        return Path(chosen)
    # The XDG Base Directory Specification: an empty or relative XDG_CACHE_HOME counts as unset.
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (cache if cache.is_absolute() else Path.home() / ".cache") / "rankzero"
