"""Files on disk for good: replaced as a whole, there after a power cut, and told apart by a hash."""

import hashlib
import os
from contextlib import suppress
from pathlib import Path


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


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's content, in hexadecimal. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
