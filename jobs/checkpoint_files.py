"""Checkpoint files as a process that is no part of a run reads them: what the database names, and nothing beside it.

A run's program may have named any path for its checkpoint, and put a link where its file was. So a file is opened below
its run root alone, where that is the storage it was saved to, or below the service's own checkpoint root.
"""

import errno
import os
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import structlog

from jobs import beneath
from jobs.errors import FileElsewhereError, StateConflictError
from jobs.settings import get_settings
from jobs.storage_marks import read_mark
from jobs.tables import Checkpoint

FILE = "file://"
BLOCK_BYTES = 4 * 1024 * 1024

log = structlog.get_logger()


@dataclass(frozen=True)
class OpenFile:
    """A file that is open for reading, and how long it is."""

    content: BinaryIO
    size_bytes: int


def open_checkpoint(checkpoint: Checkpoint, run_dir: str) -> OpenFile:
    """Open the file of a checkpoint, or its copy. `run_dir` is the directory of the run that saved it.

    Raises FileElsewhereError where this process can read neither, and StateConflictError where the file is not the
    one that was saved.
    """
    for try_it in (_open_own, _open_copy):
        try:
            found = try_it(checkpoint, run_dir)
        except OSError as error:
            log.info("checkpoint_not_here", checkpoint_id=checkpoint.id, error=str(error))
            continue
        if found is None:
            continue
        if found.size_bytes != checkpoint.size_bytes:
            found.content.close()
            raise StateConflictError(
                f"the file of checkpoint {checkpoint.id} has {found.size_bytes} bytes, and had {checkpoint.size_bytes} "
                "when it was saved: it was written over since"
            )
        return found
    if beneath.is_within(checkpoint.path, run_dir):
        told = (
            f"this API cannot read the file of checkpoint {checkpoint.id}: take it from host {checkpoint.host_name}, "
            "or give the API the run root of that host or the checkpoint root of the service"
        )
    else:
        told = (
            f"checkpoint {checkpoint.id} was saved outside of its run's directory, from where alone files are served: "
            f"take {checkpoint.path} from host {checkpoint.host_name}"
        )
    raise FileElsewhereError(
        told,
        host=checkpoint.host_name,
        path=checkpoint.path,
        copy_url=checkpoint.copy_url,
    )


def _open_own(checkpoint: Checkpoint, run_dir: str) -> OpenFile | None:
    """Open the file itself, if this machine sees the run root that it lies in."""
    run_root = Path(run_dir).parent.parent
    if not beneath.is_within(checkpoint.path, run_dir) or checkpoint.storage is None:
        return None
    if read_mark(run_root) != checkpoint.storage:
        return None  # a folder of the same path on another machine
    return _opened(beneath.open_file(str(run_root), checkpoint.path))


def _open_copy(checkpoint: Checkpoint, _run_dir: str) -> OpenFile | None:
    root = get_settings().checkpoint_root
    if root is None or checkpoint.copy_url is None or not checkpoint.copy_url.startswith(f"{root.rstrip('/')}/"):
        return None  # the root of one job, which its user has named
    if "://" not in root or root.startswith(FILE):
        return _opened(beneath.open_file(root.removeprefix(FILE), checkpoint.copy_url.removeprefix(FILE)))
    return _open_remote(checkpoint.copy_url)


def _open_remote(url: str) -> OpenFile:
    # Late: most checkpoint roots are folders, and a store's library is large.
    from fsspec.core import url_to_fs

    try:
        system, path = url_to_fs(url, use_listings_cache=False)
        # Blocks are read in order, and once.
        content = system.open(path, "rb", block_size=BLOCK_BYTES, cache_type="readahead")
    except Exception as error:  # each store has errors of its own, of no common class
        raise OSError(errno.EIO, str(error) or type(error).__name__, url) from error
    return OpenFile(content, int(content.size))


def _opened(content: BinaryIO) -> OpenFile:
    return OpenFile(content, os.fstat(content.fileno()).st_size)
