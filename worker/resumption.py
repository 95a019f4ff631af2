"""Resumption: brings the checkpoint that a run begins with to where its ranks can read it, whole.

Node 0 decides for all nodes: the furthest checkpoint of the job that is whole, else that of the job which it starts
from, else none. The others bring the same one, or the run ends.
"""

import errno
import hashlib
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import structlog
from sqlalchemy.orm import Session

from jobs.database import Database
from jobs.spec import StartFrom
from jobs.store import attempts, continuing, nodes, reports
from jobs.tables import Checkpoint, Job, Placement
from trainer.errors import CheckpointError
from worker import peers, remote_files
from worker.clock import clock
from worker.link import patiently

FOLDER = "resume"
"""Folder of the run directory for what was brought from an object store; it goes when the run has ended."""
TRIES = 4
"""How often a file is asked for, where the store does not answer or breaks off."""
WAIT_S = 2
"""Seconds before the second try, twice as many before each further one."""
TELL_S = 10
"""Seconds between two words in the log on how far a download is."""

log = structlog.get_logger()

Result = TypeVar("Result")


@dataclass(frozen=True)
class Beginning:
    """What a run begins with: at most one of the two."""

    resume: Path | None = None
    """Checkpoint to continue from."""
    weights: Path | None = None
    """Checkpoint of another job whose weights it begins anew with."""


class _UnusableError(Exception):
    """A checkpoint is not there, or damaged: no further try would bring it."""


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
        return Beginning(resume=path)

    def _choose(self, job: Job) -> tuple[Checkpoint | None, Path | None]:
        """Node 0: the first candidate that can be had, and the word of it to all."""
        candidates = self._ask(partial(continuing.candidates, job=job, placement=self._placement))
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
        if found is None and candidates.own:
            self._warn("none of its checkpoints can be had: it begins anew")
        chosen = found[0].id if found else None
        self._ask(partial(nodes.decide_resume, placement=self._placement, checkpoint_id=chosen))
        return found or (None, None)

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

    def _bring(self, checkpoint: Checkpoint) -> Path:
        """Return where a checkpoint lies for this host's ranks, whole by its hash.

        Raises _UnusableError where there is no whole one in reach, OSError where a store does not give its copy.
        """
        path = Path(checkpoint.path)
        try:
            if self._digest(checkpoint.path) == checkpoint.sha256 or self._is_stopped():
                return path
            problem = "its content does not match its hash"
        except FileNotFoundError:
            problem = "there is no such file here"
        except OSError as error:
            problem = f"it cannot be read here: {error.strerror}"
        if checkpoint.copy_url is not None:
            return self._bring_copy(checkpoint, checkpoint.copy_url, problem)
        if problem == "there is no such file here" and checkpoint.host_name == self._placement.host_name:
            self._ask(partial(reports.set_removed, placement=self._placement, path=checkpoint.path))
        raise _UnusableError(problem)

    def _bring_copy(self, checkpoint: Checkpoint, url: str, problem: str) -> Path:
        if not remote_files.is_url(url):
            try:
                digest = self._digest(url)
            except OSError as error:
                raise _UnusableError(f"{problem}, and its copy {url} cannot be read: {error.strerror}") from error
            if digest != checkpoint.sha256 and not self._is_stopped():
                raise _UnusableError(f"{problem}, and its copy {url} does not match its hash")
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
        for number in range(TRIES):
            try:
                digest = self._fetch(url, target, size_bytes=checkpoint.size_bytes)
                break
            except FileNotFoundError as error:
                raise _UnusableError(f"{problem}, and there is no copy {url}") from error
            except OSError as error:
                if error.filename != url or number == TRIES - 1 or self._is_stopped():
                    raise  # a full disk of ours, or a store that has had its chances
                log.warning("download_failed", url=url, error=str(error))
                time.sleep(WAIT_S * 2**number)
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
