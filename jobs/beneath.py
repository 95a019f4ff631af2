"""Files beneath a folder, opened and removed without following a link on the way, and in no other folder.

Each part of a path is looked up in the folder that the part before it was found to be, which stays open meanwhile: a
folder or link that is put in its place between two steps leads nowhere else.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePath
from typing import BinaryIO

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NO_LINK = os.O_NOFOLLOW


def open_file(root: str, path: str) -> BinaryIO:
    """Open the regular file `path`, an absolute path, for reading where it lies beneath the folder `root`.

    Raises FileNotFoundError where it lies elsewhere, and OSError for a link, a folder or a device, or where it cannot
    be read.
    """
    with _folder_of(root, path) as (folder, name):
        # A pipe would wait for a writer otherwise.
        found = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | _NO_LINK, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(found).st_mode):
        os.close(found)
        raise OSError(errno.EINVAL, "it is no regular file", path)
    return os.fdopen(found, "rb")


def remove_file(root: str, path: str) -> None:
    """Remove the file or link `path`, an absolute path, where it lies beneath the folder `root` and is there.

    Raises FileNotFoundError where it lies elsewhere, and OSError for a folder, or where it cannot be removed.
    """
    try:
        with _folder_of(root, path) as (folder, name):
            os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        _parts(root, path)  # whether it lies elsewhere


def is_within(path: str, root: str) -> bool:
    """Whether an absolute path lies below a folder, by its words."""
    whole = PurePath(path)
    return ".." not in whole.parts and "\0" not in path and whole.is_relative_to(root) and whole != PurePath(root)


def _parts(root: str, path: str) -> tuple[str, ...]:
    if not is_within(path, root):
        raise FileNotFoundError(errno.ENOENT, f"it does not lie below {root}", path)
    return PurePath(path).relative_to(root).parts


@contextmanager
def _folder_of(root: str, path: str) -> Iterator[tuple[int, str]]:
    """Open the folder of a file, and give it with the file's name."""
    *folders, name = _parts(root, path)
    here = os.open(root, _FOLDER)  # which may be a link: where a root lies, its operator says
    try:
        for each in folders:
            below = os.open(each, _FOLDER | _NO_LINK, dir_fd=here)
            os.close(here)
            here = below
        yield here, name
    finally:
        os.close(here)
