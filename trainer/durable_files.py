"""Files on disk for good: replaced as a whole, there after a power cut, and told apart by a hash."""

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

_BLOCK_BYTES = 2**20
_SYNCED_BYTES = 2**27
"""What a slow disk takes at once: so much that a fast one is not held up, and so little that it is soon there."""


def write_atomic(path: Path, content: bytes) -> None:
    """Replace a file so that a reader, or a crash at any instant, sees the old content or the new, never a mix."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        fsync_path(path.parent)
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


def fsync_path(path: Path) -> None:
    """Make the content of a file, or of a folder (new names, renames), survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sha256_of(path: Path, *, alive: Callable[[], None] = lambda: None) -> str:
    """Return the SHA-256 of a file's content, in hexadecimal. Raises OSError. `alive` is called for each block."""
    digest, block = hashlib.sha256(), memoryview(bytearray(_BLOCK_BYTES))
    with path.open("rb", buffering=0) as file:
        while size := file.readinto(block):
            digest.update(block[:size])
            alive()
    return digest.hexdigest()


class DurableWriter:
    """Writes a large file that is on the disk part by part, and calls `alive` after each: one wait would be long."""

    def __init__(self, file: BinaryIO, *, alive: Callable[[], None]) -> None:
        self._file, self._alive = file, alive
        self._unsynced = 0

    def write(self, content: bytes) -> int:
        """Write some more. Raises OSError."""
        written = self._file.write(content)
        self._unsynced += written
        if self._unsynced >= _SYNCED_BYTES:
            self.sync()
        self._alive()
        return written

    def flush(self) -> None:
        """Do what a file does at it. Raises OSError."""
        self._file.flush()

    def sync(self) -> None:
        """Bring all that is written to the disk. Raises OSError."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._unsynced = 0
