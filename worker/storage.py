"""Storages: the folders and object stores that a host can read, each under the id that all hosts sharing it know."""

import errno
import os
import secrets
import shutil
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import structlog

from jobs.database import Database, now
from jobs.settings import Settings
from jobs.storage_marks import MARK, read_mark
from jobs.store import copies
from trainer.durable_files import fsync_path
from worker import remote_files
from worker.clock import clock
from worker.steps import attempted

LOOK_S = 30
"""Seconds between two looks for storages that are not known to be in reach."""
NEWS_S = 2
"""Seconds after which it looks where a checkpoint has come to lie in one of these: a job may wait for the answer."""
COMMIT_S = 1
"""Seconds for which a transaction that tells of a checkpoint may be under way, unseen by a look."""
FIRST_LOOK_S = 10
"""Seconds that a host's registration waits for the first look at most: an object store may be slow to answer."""
STOP_S = 1
"""Seconds that the worker's end waits for a look that is under way."""
_MARK_WRITTEN_S = 5

log = structlog.get_logger()


def mark(folder: Path) -> str:
    """Return the id of the storage that a folder is, which the first to come writes. Raises OSError naming the file."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / MARK
    # Only one of several hosts that start at once creates it, on a network file system too.
    with suppress(FileExistsError):
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            os.write(descriptor, f"{secrets.token_hex(16)}\n".encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        fsync_path(folder)
    deadline = time.monotonic() + _MARK_WRITTEN_S
    while (found := read_mark(folder)) is None:
        if time.monotonic() > deadline:
            raise OSError(errno.EIO, "it holds no id, as after a crash; remove it", str(file))
        time.sleep(0.05)  # another host is just writing it
    return found


def storage_of_url(url: str) -> str:
    """Return the id of the storage that a file of an object store lies in: the store's name and the first folder."""
    parts = urlsplit(url)
    first = parts.path.strip("/").partition("/")[0]
    return f"{parts.scheme}://{parts.netloc}/{first}".rstrip("/")


def storage_of_root(root: str) -> str:
    """Return the id of the storage that a checkpoint root is, making the folder where it is one. Raises OSError."""
    return storage_of_url(root) if remote_files.is_url(root) else mark(remote_files.local(root))


def storage_of_run(run_dir: Path) -> str | None:
    """Return the id of the storage that a run directory lies in: that of its run root."""
    return read_mark(run_dir.parent.parent)


def is_seen(storage: str, file: str) -> bool:
    """Whether this host sees, now, the storage of a file: a folder, which may be mounted, though the file has gone; of
    an object store the file itself."""
    if remote_files.is_url(file):
        return remote_files.exists(file)
    return any(read_mark(folder) == storage for folder in remote_files.local(file).parents)


def free_bytes(folder: Path) -> int:
    """Return the space that is left where a folder lies; 0 where it is out of reach, since nothing can be written."""
    try:
        return shutil.disk_usage(folder).free
    except OSError as error:
        log.error("run_root_unreachable", folder=str(folder), error=str(error))
        return 0


class Storages:
    """The storages in reach of this host. One that was reached once counts until the worker ends: a store that does
    not answer for a while is no reason to begin jobs anew elsewhere."""

    def __init__(self, database: Database, settings: Settings) -> None:
        """Raises ValueError where the run root cannot be written."""
        self._database = database
        self._checkpoint_root = settings.checkpoint_root
        try:
            self._known = [mark(settings.run_root)]
        except OSError as error:
            raise ValueError(
                f"run_root: {settings.run_root} cannot be used ({error}); "
                "set RANKZERO_RUN_ROOT to a folder that this worker may write"
            ) from error
        self.looked_at: datetime | None = None
        """Database's time of the last look that came to its end."""
        self._has_looked = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._has_reached_root = self._checkpoint_root is None
        self._is_told = False
        self._began = float("-inf")
        """Time on `clock` at which the last look began."""

    @property
    def ids(self) -> list[str]:
        """Those in reach, as far as is known; that of the run root first."""
        return list(self._known)

    def start(self, on_look: Callable[[], None]) -> None:
        """Begin to look for others, and wait a little for the first result; `on_look` publishes what was found."""
        self._thread = threading.Thread(target=self._keep_looking, args=(on_look,), name="storages", daemon=True)
        self._thread.start()
        self._has_looked.wait(FIRST_LOOK_S)

    def stop(self) -> None:
        """Begin no further look. One that is under way is hardly waited for: its file system may hang."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(STOP_S)

    def look(self) -> None:
        """Look for storages in reach: the checkpoint root's, and those that the checkpoints of jobs lie in."""
        # Not again: of a shared folder that is not mounted for a while, another would be made in its place.
        if self._checkpoint_root is not None and not self._has_reached_root:
            self._reach_root(self._checkpoint_root)
        with self._database.session_scope(read_only=True) as session:
            at = now(session) - timedelta(seconds=COMMIT_S)
            places = copies.storages_in_use(session, known=self._known)
        for place in places:
            if is_seen(place.storage, place.file):
                self._add(place.storage)
        self.looked_at = at

    def _reach_root(self, root: str) -> None:
        try:
            storage = storage_of_root(root)
            if storage not in self._known:
                if remote_files.is_url(root):
                    remote_files.write(f"{root.rstrip('/')}/{MARK}", f"{storage}\n".encode())
                self._add(storage)
            self._has_reached_root = True
        except (OSError, ValueError) as error:
            if not self._is_told:
                log.error("checkpoint_root_unusable", checkpoint_root=root, error=str(error))
            self._is_told = True

    def _add(self, storage: str) -> None:
        log.info("storage_in_reach", storage=storage)
        self._known = [*self._known, storage]  # a new list: another thread may be reading the old one

    def _is_look_due(self) -> bool:
        if self.looked_at is None or clock() - self._began >= LOOK_S:
            return True
        with self._database.session_scope(read_only=True) as session:
            return copies.has_new(session, since=self.looked_at, known=self._known)

    def _keep_looking(self, on_look: Callable[[], None]) -> None:
        while True:
            with attempted("storages", self._database):
                if self._is_look_due():
                    self._began = clock()
                    self.look()
                    on_look()
            self._has_looked.set()
            if self._stopping.wait(NEWS_S):
                return
