"""Data files: opened only where they are files, and refused by name whatever is wrong with their content."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from trainer.errors import DataError

_BROKEN = (ValueError, LookupError, TypeError, OverflowError, RecursionError, SyntaxError, OSError)
"""What parsers of XML, JSON and YAML, and conversions of what they find, raise on content that nobody foresaw."""


def open_file(path: Path) -> BinaryIO:
    """Open a file that is one: to open a pipe would wait for a writer, and a device may never end. Raises OSError."""
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))  # noqa: SIM115  (handed on)
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError("not a regular file")
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
