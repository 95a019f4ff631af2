"""Data files: opened only where they are files, and may be read; refused by name whatever is wrong with their content.

Whoever runs a host may have said which folders data is read from (DATA_WITHIN_VARIABLE). A data set's lists may name
any file, and a link in it may lead anywhere: so each file is looked at once it is open.
"""

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import BinaryIO

from trainer.data.known import data_root
from trainer.errors import DataError
from trainer.run_dir import DATA_WITHIN_VARIABLE

_BROKEN = (ValueError, LookupError, TypeError, OverflowError, RecursionError, SyntaxError, OSError)
"""What parsers of XML, JSON and YAML, and conversions of what they find, raise on content that nobody foresaw."""


def open_file(path: Path) -> BinaryIO:
    """Open a file that is one: to open a pipe would wait for a writer, and a device may never end.

    Raises OSError, PermissionError where it lies outside of the folders that data is read from.
    """
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))  # noqa: SIM115  (handed on)
    try:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError("not a regular file")
        _refuse_outside(_place(file, path))
    except OSError:
        file.close()
        raise
    return file


def read_bytes(path: Path, *, missing: str = "") -> bytes:
    """Return a file's content. Raises DataError naming the file; `missing` says what a file should be there for."""
    try:
        with open_file(path) as file:
            return file.read()
    except FileNotFoundError as error:
        raise DataError(f"data: {path} is missing{missing and f'; {missing}'}") from error
    except OSError as error:
        raise DataError(f"data: {path} cannot be read: {error.strerror or error}") from error


def read_text(path: Path) -> str:
    """Return a text file's content, which tools for Windows begin with a mark. Raises DataError naming the file."""
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"data: {path} is no text that can be read: {error}") from error


@contextmanager
def naming(where: object, what: str = "") -> Iterator[None]:
    """Raise DataError that names `where` for whatever goes wrong as content is taken apart; `what` says what it is not.

    An error that is a DataError already says more, and passes.
    """
    try:
        yield
    except DataError:
        raise
    except _BROKEN as error:
        said = str(error) if type(error) is ValueError else f"{type(error).__name__}: {error}"
        raise DataError(f"data: {where}{what}: {said:.300}") from error


def check_folder(folder: Path) -> None:
    """Raise DataError for a folder that lies outside of those that data is read from, before its files are listed."""
    try:
        _refuse_outside(os.path.join(os.path.realpath(folder), ""))
    except PermissionError as error:
        raise DataError(f"data: folder {folder} is not read: {error}") from error


def _refuse_outside(place: str) -> None:
    within = _folders()
    if within is not None and not any(place.startswith(folder) for folder in within):
        raise PermissionError(f"it lies at {place}, outside of the folders that this host lets data be read from")


@cache
def _folders() -> tuple[str, ...] | None:
    """Return the folders that data is read from, each with a slash at its end; None where any will do."""
    listed = os.environ.get(DATA_WITHIN_VARIABLE)
    if listed is None:
        return None
    # The data sets that are known by name lie beside them.
    return tuple(os.path.join(os.path.realpath(folder), "") for folder in [*json.loads(listed), data_root()])


def _place(file: BinaryIO, path: Path) -> str:
    """Return where an open file lies, whatever has become of the links that led to it."""
    try:
        return os.readlink(f"/proc/self/fd/{file.fileno()}")
    except OSError:  # this system has no such folder
        return os.path.realpath(path)
