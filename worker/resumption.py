"""Resumption: brings the checkpoint that a run begins with to where its ranks can read it, whole.

Node 0 decides for all nodes: the furthest checkpoint of the job that is whole, else that of the job which it starts
from, else none. The others bring the same one, or the run ends.
"""

import errno
import hashlib
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import structlog
from sqlalchemy.orm import Session

from jobs.database import Database
from jobs.spec import StartFrom
from jobs.store import attempts, continuing, copies, nodes, reports
from jobs.store.continuing import Candidates
from jobs.store.nodes import OutOfReach
from jobs.tables import Checkpoint, Job, Placement
from trainer.errors import CheckpointError
from worker import peers, remote_files
from worker.clock import clock
from worker.link import POLL_S, patiently
from worker.storage import is_seen

FOLDER = "resume"
"""Folder of the run directory for what was brought from an object store; it goes when the run has ended."""
TRIES = 4
"""How often a file is read, where its folder or store does not answer or breaks off."""
WAIT_S = 2
"""Seconds before the second try, twice as many before each further one."""
TELL_S = 10
"""Seconds between two words in the log on how far a download is."""

log = structlog.get_logger()

Result = TypeVar("Result")


@dataclass(frozen=True)
class Beginning:
    """What a run begins with: at most one of `resume` and `weights`."""

    resume: Path | None = None
    """Checkpoint to continue from."""
    step: int | None = None
    """The step of `resume`."""
    weights: Path | None = None
    """Checkpoint of another job whose weights it begins anew with."""


class _UnusableError(Exception):
    """A checkpoint is not there, or damaged: no further try would bring it."""


class _GoneError(_UnusableError):
    """The storage that a checkpoint lay in is here, and the file is not."""


_NOT_HERE = (FileNotFoundError, NotADirectoryError, PermissionError)
"""What comes of the path of a file that only other hosts have."""


class Resumption:
    """Brings what one placement begins with."""

    def __init__(
        self, database: Database, placement: Placement, *, until: Callable[[], float], is_stopped: Callable[[], bool]
    ) -> None:
        """Waits for a database that is away until `until` on the link's clock. `is_stopped` is asked between blocks of
        large files: once it says so the result is of no use, and comes at once."""
        self._database = database
        self._placement = placement
        self._until = until
        self._is_stopped = is_stopped
        self._folder = Path(placement.run_dir) / FOLDER

    def begin(self, job: Job, start_from: StartFrom | None) -> Beginning:
        """Return what the run begins with, once it is here.

        Raises CheckpointError for a checkpoint of another job that is gone or damaged, and OSError where a store does
        not give what it has: another attempt may get it.
        """
        checkpoint, path = self._choose(job) if self._placement.node_rank == 0 else self._follow()
        if checkpoint is None or path is None:
            return Beginning()
        if start_from is not None and start_from.mode == "weights" and checkpoint.job_id != job.id:
            return Beginning(weights=path)
        return Beginning(resume=path, step=checkpoint.step)

    def _choose(self, job: Job) -> tuple[Checkpoint | None, Path | None]:
        """Node 0: the first candidate that can be had, and the word of it to all."""
        candidates = self._candidates(job)
        found: tuple[Checkpoint, Path] | None = None
        for checkpoint in candidates.own:
            try:
                found = checkpoint, self._bring(checkpoint)
                break
            except _UnusableError as error:
                self._warn(f"checkpoint {checkpoint.path} of step {checkpoint.step} is passed over: {error}")
            if self._is_stopped():
                return None, None
        if found is None and candidates.started_from is not None:
            origin = candidates.started_from
            try:
                found = origin, self._bring(origin)
            except _UnusableError as error:
                raise CheckpointError(
                    f"start_from: checkpoint {origin.id} of job {origin.job_id} (step {origin.step}) cannot be had: "
                    f"{error}; a job keeps its last two checkpoints and the best"
                ) from error
        if self._is_stopped():
            return None, None
        self._warn_of_loss(candidates.out_of_reach, found[0] if found else None)
        if found is None and candidates.own:
            self._warn("none of its checkpoints can be had: it begins anew")
        chosen = found[0].id if found else None
        self._ask(partial(nodes.decide_resume, placement=self._placement, checkpoint_id=chosen))
        return found or (None, None)

    def _candidates(self, job: Job) -> Candidates:
        """Return what the run may begin with, once each of its hosts has said what it can read (`reach.ANSWER`)."""
        is_told = False
        while True:
            found = self._ask(partial(continuing.candidates, job=job, placement=self._placement))
            if not found.awaited or self._is_stopped():
                return found
            if not is_told:
                log.info("hosts_awaited", hosts=found.awaited)
            is_told = True
            time.sleep(POLL_S)

    def _follow(self) -> tuple[Checkpoint | None, Path | None]:
        """Another node: wait for node 0's word, and bring the same checkpoint."""
        decision = peers.wait_for_decision(self._database, self._placement, is_stopped=self._is_stopped)
        if decision is None or decision.checkpoint is None:
            return None, None
        checkpoint = decision.checkpoint
        try:
            return checkpoint, self._bring(checkpoint)
        except _UnusableError as error:
            message = f"node 0 continues from it, and host {self._placement.host_name} cannot: {error}"
            raise OSError(errno.EIO, message, checkpoint.path) from error

    def _warn_of_loss(self, out_of_reach: Sequence[OutOfReach], chosen: Checkpoint | None) -> None:
        """Say that work is done again which a host of the run cannot read."""
        if not out_of_reach:
            return
        lost, cannot = out_of_reach[0].checkpoint, out_of_reach[0].cannot
        if chosen is None:
            begins = "it begins anew"
        elif chosen.job_id != lost.job_id:
            begins = f"it begins again with checkpoint {chosen.id} of job {chosen.job_id}"
        elif chosen.step < lost.step:
            begins = f"it continues from step {chosen.step}"
        else:
            return
        self._warn(
            f"the checkpoint of step {lost.step} is on host {lost.host_name}, and cannot be read on "
            f"{' and '.join(cannot)}, so {begins}; give the job a checkpoint_root that all of its hosts reach"
        )

    def _bring(self, checkpoint: Checkpoint) -> Path:
        """Return where a checkpoint lies for this host's ranks, whole by its hash.

        Raises _UnusableError where there is no whole one in reach, OSError where what should have it does not give it.
        """
        is_own = checkpoint.host_name == self._placement.host_name
        try:
            self._read_whole(checkpoint.path, checkpoint, checkpoint.storage, is_own=is_own)
            return Path(checkpoint.path)
        except (_UnusableError, OSError) as error:
            if checkpoint.copy_url is None:
                if isinstance(error, _GoneError) and is_own:
                    self._ask(partial(reports.set_removed, placement=self._placement, path=checkpoint.path))
                raise
            problem = error
        try:
            return self._bring_copy(checkpoint, checkpoint.copy_url, str(problem))
        except _UnusableError:
            if isinstance(problem, OSError):
                raise problem from None  # the file itself may be had later
            raise

    def _read_whole(self, place: str, checkpoint: Checkpoint, storage: str | None, *, is_own: bool = False) -> None:
        """Read a file of a folder, and compare its hash. `is_own` says that this host itself has saved it.

        Raises _UnusableError, or OSError where this host should have the file and does not get it now.
        """
        in_reach = self._ask(partial(copies.in_reach, host_name=self._placement.host_name))
        should_have_it = storage is not None and (is_own or storage in in_reach)
        try:
            digest = self._try_again(
                partial(self._digest, place), place, final=FileNotFoundError if should_have_it else _NOT_HERE
            )
        except FileNotFoundError as error:
            if storage is None or not should_have_it:
                raise _UnusableError("there is no such file here") from error
            if not is_seen(storage, place):
                message = (
                    "the folder that it was saved to is not there; mount it, or submit the job again to begin anew"
                )
                raise OSError(errno.ESTALE, message, place) from error
            raise _GoneError("there is no such file here") from error
        except _NOT_HERE as error:
            if should_have_it:
                raise
            raise _UnusableError(f"it cannot be read here: {error.strerror}") from error
        if digest != checkpoint.sha256 and not self._is_stopped():
            raise _UnusableError("its content does not match its hash")

    def _try_again(
        self, read: Callable[[], str], place: str, *, final: type[OSError] | tuple[type[OSError], ...]
    ) -> str:
        """Return what a file reads as. Errors that are not `final` may go by: these have several tries."""
        for number in range(TRIES):
            try:
                return read()
            except final:
                raise
            except OSError as error:
                # Another file's is that of a full disk of ours.
                if error.filename != place or number == TRIES - 1 or self._is_stopped():
                    raise
                log.warning("read_failed", place=place, error=str(error))
                time.sleep(WAIT_S * 2**number)
        raise AssertionError("the last try returns or raises")

    def _bring_copy(self, checkpoint: Checkpoint, url: str, problem: str) -> Path:
        if not remote_files.is_url(url):
            try:
                self._read_whole(url, checkpoint, checkpoint.copy_storage)
            except _UnusableError as error:
                raise _UnusableError(f"{problem}, and its copy {url}: {error}") from error
            return remote_files.local(url)
        path = self._download(checkpoint, url, problem)
        best = self._ask(partial(continuing.best_beside, checkpoint=checkpoint))
        if best is not None and best.copy_url is not None and not self._is_stopped():
            # Beside it, where the trainer looks for the best so far, which it would otherwise seek anew.
            try:
                self._download(best, best.copy_url, "it is the best so far")
            except (_UnusableError, OSError) as error:
                self._warn(f"the best checkpoint so far, of step {best.step}, could not be brought: {error}")
        return path

    def _download(self, checkpoint: Checkpoint, url: str, problem: str) -> Path:
        """Bring a file of an object store into the run directory."""
        target = self._folder / Path(checkpoint.path).name
        target.parent.mkdir(parents=True, exist_ok=True)
        fetch = partial(self._fetch, url, target, size_bytes=checkpoint.size_bytes)
        try:
            digest = self._try_again(fetch, url, final=FileNotFoundError)
        except FileNotFoundError as error:
            raise _UnusableError(f"{problem}, and there is no copy {url}") from error
        if digest != checkpoint.sha256 and not self._is_stopped():
            target.unlink()
            raise _UnusableError(f"{problem}, and its copy {url} does not match its hash")
        return target

    def _fetch(self, url: str, target: Path, *, size_bytes: int) -> str:
        """Write a store's file to `target`; return its sha256."""
        digest, got_bytes, told_at = hashlib.sha256(), 0, clock()
        with target.open("wb") as file:
            for block in remote_files.read_blocks(url):
                if self._is_stopped():
                    break
                file.write(block)
                digest.update(block)
                got_bytes += len(block)
                if clock() - told_at >= TELL_S:
                    told_at = clock()
                    log.info("downloading", url=url, got_bytes=got_bytes, size_bytes=size_bytes)
        log.info("downloaded", url=url, size_bytes=got_bytes)
        return digest.hexdigest()

    def _digest(self, place: str) -> str:
        digest = hashlib.sha256()
        for block in remote_files.read_blocks(place):
            if self._is_stopped():
                break
            digest.update(block)
        return digest.hexdigest()

    def _warn(self, message: str) -> None:
        log.warning("checkpoint_passed_over", message=message)
        detail = {"level": "warning", "message": message}
        self._ask(partial(attempts.note, placement=self._placement, kind="log", detail=detail))

    def _ask(self, work: Callable[[Session], Result]) -> Result:
        return patiently(self._database, work, until=self._until())


def clear(run_dir: Path) -> None:
    """Remove what was brought for a run that has ended."""
    shutil.rmtree(run_dir / FOLDER, ignore_errors=True)
