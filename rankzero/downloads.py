"""Downloads: a file of the service's on this machine, whole or not at all."""

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import httpx2

from rankzero.connection import Connection, Query
from rankzero.errors import DownloadError, UnreachableError
from rankzero.patience import Patience

BLOCK_BYTES = 1024 * 1024

OnProgress = Callable[[int, int], object]
"""Called with the bytes that are there, and with those there are to be, 0 where nobody knows."""


@dataclass(frozen=True)
class Source:
    """What is downloaded."""

    url_path: str
    query: Query | None = None
    name: str = "download"
    """What it is called in a folder."""
    sha256: str | None = None
    """Where it is known, what breaks off can go on."""
    size_bytes: int = 0


def download(connection: Connection, source: Source, target: Path, *, on_progress: OnProgress | None = None) -> Path:
    """Write a source to `target`, or into it where that is a folder, and return where it is.

    It is written beside that under another name, held against its SHA-256, and renamed at the end. What breaks off goes
    on where it was, also in another call, where the SHA-256 is known, and begins anew where not. Raises DownloadError.
    """
    target = target / source.name if target.is_dir() else target
    unfinished = target.with_name(f".{target.name}.{(source.sha256 or 'new')[:16]}.part")
    try:
        with _alone(unfinished, kept=source.sha256 is not None) as file:
            _Transfer(connection, source, file, on_progress).run()
            file.flush()
            os.fsync(file.fileno())
            unfinished.replace(target)
    except OSError as error:
        raise DownloadError(f"{target} cannot be written: {error.strerror or error}") from error
    return target


class _Transfer:
    """The bytes of one file on their way."""

    def __init__(self, connection: Connection, source: Source, file: BinaryIO, on_progress: OnProgress | None) -> None:
        self._connection = connection
        self._source = source
        self._file = file
        self._on_progress = on_progress
        self._digest = hashlib.sha256()
        self._done = 0

    def run(self) -> None:
        """Write all of it. Raises UnreachableError where it breaks off and does not go on."""
        self._take_up()
        patience = Patience(self._connection.patience_s)
        while not self._is_whole():
            before = self._done
            try:
                self._transfer()
                break
            except httpx2.TransportError as error:
                if self._done > before:
                    patience.answered()
                if not patience.pause():
                    why = f"the download from {self._connection.url} breaks off again and again ({error})"
                    raise UnreachableError(why) from error
        if self._source.sha256 not in (None, self._digest.hexdigest()):
            self._file.truncate(0)
            raise DownloadError(f"{self._source.name} arrived damaged: its SHA-256 is another; download it again")

    def _is_whole(self) -> bool:
        return self._source.sha256 is not None and self._done == self._source.size_bytes

    def _take_up(self) -> None:
        """Begin with what is there of an earlier call."""
        while block := self._file.read(BLOCK_BYTES):
            self._count(block)
        if self._source.sha256 is None or self._done > self._source.size_bytes:
            self._begin_anew()

    def _begin_anew(self) -> None:
        self._file.seek(0)
        self._file.truncate()
        self._digest = hashlib.sha256()
        self._done = 0

    def _transfer(self) -> None:
        headers = {"Accept-Encoding": "identity"}
        if self._done and self._source.sha256 is not None:
            # Of another file the whole is sent.
            headers |= {"Range": f"bytes={self._done}-", "If-Range": f'"{self._source.sha256}"'}
        request = self._connection.build(self._source.url_path, self._source.query, headers=headers)
        with self._connection.open(request) as response:
            if response.status_code != httpx2.codes.PARTIAL_CONTENT:
                self._begin_anew()
            for block in response.iter_bytes():
                self._file.write(block)
                self._count(block)
                if self._on_progress is not None:
                    self._on_progress(self._done, self._source.size_bytes)

    def _count(self, block: bytes) -> None:
        self._digest.update(block)
        self._done += len(block)


@contextmanager
def _alone(path: Path, *, kept: bool) -> Iterator[BinaryIO]:
    """The file, made where it is not there, for this process alone; after an error it stays where it is to be `kept`
    and has anything in it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    with os.fdopen(descriptor, "r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise DownloadError(f"another process downloads the same at this moment, to {path}") from error
        try:
            yield file
        except BaseException:
            file.flush()
            if not (kept and os.fstat(descriptor).st_size):
                path.unlink(missing_ok=True)
            raise
