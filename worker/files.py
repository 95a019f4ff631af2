"""Files that users have told to go: a thread of the worker removes the checkpoints that this host has saved.

A file goes only from where it was saved to: the folder is known by its mark, links in it are not followed, and while
it is not there (a shared folder that is not mounted) the file waits for it.
"""

import errno
import threading
from pathlib import Path

import structlog

from jobs import beneath
from jobs.database import Database
from jobs.storage_marks import read_mark
from jobs.store import checkpoints
from jobs.tables import Checkpoint
from worker import remote_files
from worker.steps import attempted

LOOK_S = 10
"""Seconds between two looks for files to remove."""

log = structlog.get_logger()


class Files(threading.Thread):
    """Removes the files of doomed checkpoints until stopped."""

    def __init__(self, database: Database, host_name: str) -> None:
        super().__init__(name="files", daemon=True)
        self._database = database
        self._host_name = host_name
        self._told: set[int] = set()
        """Ids of checkpoints of which the log says already that they cannot be removed."""
        self._stopping = threading.Event()

    def run(self) -> None:
        """Look every LOOK_S until stopped. What fails is tried again with the next look."""
        while not self._stopping.wait(LOOK_S):
            with attempted("files", self._database):
                self.look()

    def stop(self) -> None:
        """Begin no further look. One that is under way is not waited for: its file system may hang."""
        self._stopping.set()

    def look(self) -> None:
        """Remove what is to go and can be removed now."""
        with self._database.session_scope(read_only=True) as session:
            doomed = checkpoints.doomed(session, self._host_name)
        for checkpoint in doomed:
            if self._stopping.is_set():
                return
            try:
                erase(checkpoint)
            except OSError as error:
                if checkpoint.id not in self._told:
                    log.warning("checkpoint_not_removed", checkpoint_id=checkpoint.id, error=str(error))
                self._told.add(checkpoint.id)
                continue
            with self._database.session_scope() as session:
                checkpoints.set_erased(session, checkpoint)
            log.info("checkpoint_removed", checkpoint_id=checkpoint.id, path=checkpoint.path)


def erase(checkpoint: Checkpoint) -> None:
    """Remove a checkpoint's file and its copy, as far as they are still there.

    Raises OSError where one of them is out of reach or cannot be removed.
    """
    _remove(checkpoint.path, checkpoint.storage)
    if checkpoint.copy_url is None:
        return
    if remote_files.is_url(checkpoint.copy_url):
        remote_files.remove(checkpoint.copy_url)
    else:
        _remove(str(remote_files.local(checkpoint.copy_url)), checkpoint.copy_storage)


def _remove(path: str, storage: str | None) -> None:
    for folder in Path(path).parents:
        if storage is not None and read_mark(folder) == storage:
            beneath.remove_file(str(folder), path)
            return
    raise OSError(errno.ESTALE, "the folder that it was saved to is not there", path)
