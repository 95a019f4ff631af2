"""Files under a folder or in an object store (an fsspec URL): put there whole or not at all, read back, removed.

Whatever a store raises arrives as an OSError that names the file: FileNotFoundError where there is none.
"""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from trainer.durable_files import fsync_path

BLOCK_BYTES = 16 * 1024 * 1024
FILE = "file://"


class AbandonedError(Exception):
    """A transfer was given up because nobody needs it any more."""


def is_url(place: str) -> bool:
    """Whether a place is in an object store, rather than a file or folder of this host's."""
    return "://" in place and not place.startswith(FILE)


def local(place: str) -> Path:
    """Return the path of a place that `is_url` says is a file or folder."""
    return Path(place.removeprefix(FILE))


def put(source: Path, place: str, *, is_abandoned: Callable[[], bool]) -> None:
    """Copy a file to a place, where it appears as a whole.

    Raises AbandonedError once `is_abandoned`, which is asked between blocks where the store tells of them.
    """
    if is_url(place):
        with _as_os_error(place):
            system, path = _system(place)
            system.put_file(str(source), path, callback=_callback(is_abandoned))
        return
    target = local(place)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.tmp")  # always the same: what a killed process left is written over
    try:
        with temporary.open("wb") as file:
            for block in read_blocks(str(source)):
                if is_abandoned():
                    raise AbandonedError(place)
                file.write(block)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
        fsync_path(target.parent)
    finally:
        temporary.unlink(missing_ok=True)


def write(place: str, content: bytes) -> None:
    """Write a small file of an object store. Raises OSError."""
    with _as_os_error(place):
        system, path = _system(place)
        system.pipe_file(path, content)


def read_blocks(place: str) -> Iterator[bytes]:
    """Yield the content of a file, a block at a time. Raises OSError."""
    if not is_url(place):
        with local(place).open("rb") as file:
            while block := _read_block(file, place):
                yield block
        return
    with _as_os_error(place):
        system, path = _system(place)
        # Blocks come in order and are needed once: a cache would hold what was read already.
        with system.open(path, "rb", block_size=BLOCK_BYTES, cache_type="readahead") as file:
            while block := file.read(BLOCK_BYTES):
                yield block


def _read_block(file: BinaryIO, place: str) -> bytes:
    try:
        return file.read(BLOCK_BYTES)
    except OSError as error:  # such as that of a network file system, which does not say of which file
        error.filename = place
        raise


def exists(place: str) -> bool:
    """Whether a file is there and can be looked at."""
    try:
        if not is_url(place):
            return local(place).is_file()
        with _as_os_error(place):
            system, path = _system(place)
            return bool(system.isfile(path))
    except OSError:
        return False


def remove(place: str) -> None:
    """Remove a file, if it is there. Raises OSError."""
    if not is_url(place):
        local(place).unlink(missing_ok=True)
        return
    try:
        with _as_os_error(place):
            system, path = _system(place)
            system.rm_file(path)
    except FileNotFoundError:
        pass


def _system(place: str) -> tuple[Any, str]:
    # Late: a run whose checkpoints stay on its host never needs it, nor the libraries of some store.
    from fsspec.core import url_to_fs

    try:
        # Listings that another host has changed since are worth nothing here.
        system, path = url_to_fs(place, use_listings_cache=False)
    except ValueError as error:  # a scheme that is not known here, which is as good as not installed
        raise ImportError(str(error)) from error
    return system, path


def _callback(is_abandoned: Callable[[], bool]) -> Any:
    from fsspec.callbacks import Callback

    class Abandoning(Callback):  # type: ignore[misc]  # fsspec has no types
        def relative_update(self, inc: int = 1) -> None:
            super().relative_update(inc)
            if is_abandoned():
                raise AbandonedError

    return Abandoning()


@contextmanager
def _as_os_error(place: str) -> Iterator[None]:
    """Each store has errors of its own, of no common class."""
    try:
        yield
    except AbandonedError:
        raise
    except Exception as error:
        text = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise OSError(_number(error), text, place) from error  # FileNotFoundError and PermissionError stay that


def _number(error: Exception) -> int:
    match error:
        case FileNotFoundError():
            return errno.ENOENT
        case PermissionError():
            return errno.EACCES
        case ImportError() | NotImplementedError():
            return errno.ENOTSUP
    return errno.EIO
