"""Copies: a thread of the supervisor that brings a job's checkpoints to the checkpoint root as they are saved.

Nothing waits for it while the ranks train: what fails is told, and tried again. When the ranks have ended it gets some
time for what is left, with the devices still held, so that a job that is paused can be resumed on another host.
"""

import errno
import threading
from collections.abc import Callable
from pathlib import Path

import structlog
from sqlalchemy.exc import SQLAlchemyError

from jobs.database import Database
from jobs.errors import StaleAttemptError
from jobs.storage_marks import read_mark
from jobs.store import attempts, copies
from jobs.tables import Checkpoint, Placement
from trainer.errors import JournalError
from trainer.run_dir import RunDir
from worker import remote_files, storage
from worker.clock import clock
from worker.remote_files import AbandonedError

LOOK_S = 2
"""Seconds between two looks for checkpoints with no copy; after a failure twice as many each time."""
LONGEST_WAIT_S = 30
TELL_S = 10
"""Seconds between two words in the log on what a run that has ended still waits for."""
_WATCH_S = 0.2
PERMANENT = {
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTSUP),
    *(errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENAMETOOLONG, errno.ELOOP),
}
"""Errors of a checkpoint root that somebody has to mend. A full disk, or a store that does not answer, may go by."""

log = structlog.get_logger()


class Copies(threading.Thread):
    """Copies the checkpoints of one placement's job, the furthest first, and removes the copies of removed ones."""

    def __init__(self, database: Database, placement: Placement, root: str) -> None:
        super().__init__(name="copies", daemon=True)  # a store that hangs must not keep the supervisor from ending
        self._database = database
        self._placement = placement
        self._root = root.rstrip("/")
        self._run_dir = RunDir(Path(placement.run_dir))
        self._run_root = self._run_dir.path.parent.parent
        self._target: str | None = None
        """Id of the storage that the root is, once it was reached."""
        self._look_now = threading.Event()
        self._run_is_over = threading.Event()
        self._all_copied = threading.Event()
        """Nothing is left to copy, now that the run is over."""
        self._is_abandoned = threading.Event()
        self._in_vain = ""
        """Why the last try failed, where the next one would too; empty otherwise."""
        self._is_in_trouble = False
        """The last try failed, and the job's events say so."""
        self._gone: set[int] = set()
        """Ids of checkpoints that will have no copy: their files are not there, or need none."""
        self._left: list[int] = []
        """Steps of those that had none when they were last looked at."""

    def run(self) -> None:
        """Copy until abandoned, or until all is copied once the run is over."""
        wait_s: float = LOOK_S
        while not self._is_abandoned.is_set() and not self._all_copied.is_set():
            succeeded = self._round_succeeds()
            wait_s = LOOK_S if succeeded else min(2 * wait_s, LONGEST_WAIT_S)
            if succeeded and self._left:
                continue
            # Once the run is over, what is left to come is only a shipping away.
            self._look_now.wait(_WATCH_S if succeeded and self._run_is_over.is_set() else wait_s)
            self._look_now.clear()

    def finish(self, *, timeout_s: float, is_pointless: Callable[[], bool]) -> None:
        """Wait until all is copied, now that the ranks have ended, but not longer than `timeout_s`, nor once
        `is_pointless`, nor for what no wait mends (`PERMANENT`)."""
        self._in_vain = ""  # one more try: it may have been mended
        self._run_is_over.set()
        self._look_now.set()
        began = told = clock()
        while self.is_alive() and not self._all_copied.wait(_WATCH_S) and not is_pointless():
            if self._in_vain or clock() - began > timeout_s:
                why = f"({self._in_vain})" if self._in_vain else f"after {timeout_s:g} s (copy_grace_s)"
                self._tell(
                    f"no copy under {self._root} of the checkpoints of steps {self._left} {why}: "
                    "only hosts that share this one's run root can continue from them"
                )
                break
            if clock() - told >= TELL_S:
                told = clock()
                log.info("copies_awaited", steps=self._left, seconds=round(clock() - began))
        self._is_abandoned.set()
        self._look_now.set()

    def _round_succeeds(self) -> bool:
        """Copy one checkpoint, so that the furthest of those saved meanwhile is next; return whether all went well."""
        try:
            self._round()
        except (StaleAttemptError, AbandonedError) as error:
            log.info("copies_end", reason=str(error))
            self._is_abandoned.set()
        except SQLAlchemyError as error:
            log.warning("database_away", error=str(error).splitlines()[0])
            return False
        except OSError as error:
            log.warning("copy_failed", root=self._root, error=str(error))
            if not self._is_in_trouble:
                self._tell(f"checkpoints cannot be copied to {self._root}: {error}; it is tried again and again")
            self._is_in_trouble = True
            if error.errno in PERMANENT:
                self._in_vain = str(error)
            return False
        except Exception:  # a defect of ours costs the copies, and never the run
            log.exception("copy_round_failed")
            self._is_in_trouble = True
            return False
        self._is_in_trouble = False
        return True

    def _round(self) -> None:
        own = storage.storage_of_run(self._run_dir.path)
        is_over = self._run_is_over.is_set()  # before the look: what is registered after it may have been missed
        job_id = self._placement.job_id
        with self._database.session_scope(read_only=True) as session:
            missing = copies.missing(session, job_id, storage=own)
            left_over = copies.left_over(session, job_id)
            is_complete = is_over and self._last_is_registered(copies.paths(session, job_id))
        missing = [each for each in missing if each.id not in self._gone]
        self._left = [each.step for each in missing]
        if missing:
            self._copy(missing[0])
        for checkpoint in left_over:
            self._remove(checkpoint)
        if is_complete and not missing:
            self._all_copied.set()

    def _copy(self, checkpoint: Checkpoint) -> None:
        target = self._reach_target()
        if target == checkpoint.storage:
            self._gone.add(checkpoint.id)  # it lies where its copy would: whoever reads one reads the other
            return
        try:
            parts = Path(checkpoint.path).relative_to(self._run_root).parts
        except ValueError:
            parts = ()  # in the storage of this run root, and under another path
        if not parts or not Path(checkpoint.path).is_file():
            self._gone.add(checkpoint.id)
            log.warning("checkpoint_not_copied", path=checkpoint.path, reason="there is no such file here")
            return
        # job-<id>/attempt-<n>-<token>/<name>: the token keeps apart the jobs of two databases with one checkpoint root.
        place = "/".join([self._root, *(part for part in parts if part != self._run_dir.checkpoints.name)])
        began = clock()
        remote_files.put(Path(checkpoint.path), place, is_abandoned=self._is_abandoned.is_set)
        with self._database.session_scope() as session:
            copies.set_copied(session, self._placement, checkpoint, url=place, storage=target)
        seconds = round(clock() - began, 1)
        log.info("checkpoint_copied", url=place, size_bytes=checkpoint.size_bytes, seconds=seconds)

    def _reach_target(self) -> str:
        """Return the id of the storage that the root is. Raises OSError where it is not what it was."""
        if self._target is None:
            self._target = storage.storage_of_root(self._root)
        elif not remote_files.is_url(self._root) and read_mark(remote_files.local(self._root)) != self._target:
            # Such as a shared folder that is not mounted any more: what is written there now, nobody else sees.
            raise OSError(errno.ESTALE, "it is not the folder that it was when the run began", self._root)
        return self._target

    def _remove(self, checkpoint: Checkpoint) -> None:
        assert checkpoint.copy_url is not None, "it has a copy"
        if not checkpoint.copy_url.startswith(f"{self._root}/"):
            return  # its job had another checkpoint root then, which may be out of our reach
        remote_files.remove(checkpoint.copy_url)
        with self._database.session_scope() as session:
            copies.forget_copy(session, self._placement, checkpoint)

    def _last_is_registered(self, registered: set[str]) -> bool:
        """Whether the database knows of the last checkpoint that the journal names: it is shipped by another thread."""
        try:
            last = self._run_dir.last_checkpoint()
        except (JournalError, OSError):
            return True  # it will never be shipped either
        return last is None or str(self._run_dir.path / last.path) in registered

    def _tell(self, message: str) -> None:
        """Tell the job's user; a database that is away costs only this."""
        detail = {"level": "warning", "message": message[:2000]}
        try:
            with self._database.session_scope() as session:
                attempts.note(session, self._placement, "log", detail)
        except (SQLAlchemyError, StaleAttemptError) as error:
            log.warning("copy_trouble_untold", message=message, error=str(error).splitlines()[0])
