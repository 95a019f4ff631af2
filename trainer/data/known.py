"""The data sets that are known by name, and how a config's `data` becomes a folder."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from trainer.errors import ConfigError

DATA_ROOT_VARIABLE = "RANKZERO_DATA_ROOT"
"""Environment variable: the folder that known data sets are kept in, instead of the user's cache."""


@dataclass(frozen=True)
class KnownData:
    """A data set that needs no path."""

    description: str
    folder: Callable[[Path], Path]
    """Returns its folder, writing it below the cache folder it is given if need be."""


def _digits(cache: Path) -> Path:
    from trainer.data.digits import digits_folder  # the catalog names data sets without their libraries

    return digits_folder(cache)


KNOWN_DATA = {
    "digits": KnownData("1797 handwritten digits, 8 by 8 grey, 10 classes (scikit-learn's)", _digits),
}


def data_folder(name: str) -> Path:
    """Return the folder of a known data set, or the path as given. Raises ConfigError for an unknown bare name."""
    return KNOWN_DATA[name].folder(data_root()) if name in KNOWN_DATA else data_path(name)


def data_path(name: str) -> Path:
    """Return the path that is meant by what is no known name, `~` expanded. Raises ConfigError for a bare name."""
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
