"""Checkpoints as users deal with them: one of a job's, the best and the last, and those that are to be removed.

Told to be removed, a checkpoint counts as gone at once: no run begins with it. Its file and its copy go when the worker
of the host that has them gets to it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Select, select, update
from sqlalchemy.orm import Session

from jobs.beneath import is_within
from jobs.database import now
from jobs.errors import NotFoundError, StateConflictError
from jobs.feed import Topic
from jobs.states import State
from jobs.store import feed, jobs
from jobs.store.reports import select_checkpoints
from jobs.store.transitions import changed
from jobs.tables import Attempt, Checkpoint, Job, Placement

Kept = Literal["best", "last"]

_OVER = [state for state in State if state.is_terminal]


@dataclass(frozen=True)
class Pruned:
    """What became of a job's checkpoints."""

    removed: Sequence[Checkpoint]
    kept: Sequence[Checkpoint]
    """Those that were to be kept, and those that a run still needs."""


def select_some(
    job_id: int, *, with_removed: bool, best: bool, last: bool, newest_first: bool = False
) -> Select[Checkpoint]:
    """Return the query for a job's checkpoints, oldest first: with `best` and `last` only the one that is."""
    query = select_checkpoints(job_id, with_removed=with_removed)
    if best:
        query = query.where(Checkpoint.best)
    if last:
        query = query.where(Checkpoint.id == _last(job_id).scalar_subquery())
    return query.order_by(None).order_by(Checkpoint.id.desc()) if newest_first else query


def get(session: Session, job_id: int, checkpoint_id: int) -> Checkpoint:
    """Return a checkpoint of a job, also one that was removed. Raises NotFoundError."""
    jobs.get(session, job_id)
    checkpoint = session.get(Checkpoint, checkpoint_id, populate_existing=True)
    if checkpoint is None or checkpoint.job_id != job_id:
        raise NotFoundError(f"job {job_id} has no checkpoint {checkpoint_id}")
    return checkpoint


def get_file(session: Session, job_id: int, checkpoint_id: int) -> tuple[Checkpoint, str]:
    """Return a checkpoint of a job, and the run directory of the attempt that saved it.

    Raises NotFoundError, also where its file was removed.
    """
    checkpoint = get(session, job_id, checkpoint_id)
    if checkpoint.removed_at is not None:
        raise NotFoundError(f"the file of checkpoint {checkpoint_id} was removed at {checkpoint.removed_at}")
    return checkpoint, _run_dir(session, checkpoint)


def remove(session: Session, job_id: int, checkpoint_id: int) -> None:
    """Have a checkpoint removed; one that is gone already stays as it is.

    Raises NotFoundError, and StateConflictError where a run may still need it, or its file is not ours to remove.
    """
    job = _held(session, job_id)
    checkpoint = get(session, job_id, checkpoint_id)
    if checkpoint.removed_at is not None:
        return
    if (why := _needs(session, job).why_kept(checkpoint)) is not None:
        raise StateConflictError(f"checkpoint {checkpoint_id} stays: {why}")
    _doom(session, [checkpoint])


def prune(session: Session, job_id: int, *, keep: Collection[Kept]) -> Pruned:
    """Have all checkpoints of a job removed but the best, the last, and those that a run may still need."""
    job = _held(session, job_id)
    needs = _needs(session, job)
    removed: list[Checkpoint] = []
    kept: list[Checkpoint] = []
    for checkpoint in session.scalars(select_checkpoints(job_id).execution_options(populate_existing=True)):
        is_wanted = ("best" in keep and checkpoint.best) or ("last" in keep and checkpoint.id == needs.last)
        stays = is_wanted or needs.why_kept(checkpoint) is not None
        (kept if stays else removed).append(checkpoint)
    _doom(session, removed)
    return Pruned(removed, kept)


def doomed(session: Session, host_name: str) -> Sequence[Checkpoint]:
    """Return checkpoints whose files this host has to remove, those told first at first."""
    waiting = (Checkpoint.host_name == host_name, Checkpoint.doomed_at.is_not(None))
    return session.scalars(select(Checkpoint).where(*waiting).order_by(Checkpoint.doomed_at, Checkpoint.id)).all()


def set_erased(session: Session, checkpoint: Checkpoint) -> None:
    """Tell that file and copy of a doomed checkpoint are gone."""
    same = (Checkpoint.id == checkpoint.id, Checkpoint.doomed_at == checkpoint.doomed_at)
    if changed(session, update(Checkpoint).where(*same).values(doomed_at=None, copy_url=None, copy_storage=None)):
        feed.tell_rows(session, Topic.CHECKPOINTS, [checkpoint.id], job_id=checkpoint.job_id, at=now(session))


def _held(session: Session, job_id: int) -> Job:
    """Return a job with its row held, and before that its newest attempt's, which is the order of all who write."""
    job = jobs.get(session, job_id)
    newest = select(Attempt.number).where(Attempt.job_id == job_id, Attempt.number == job.attempt)
    session.execute(newest.with_for_update())
    session.refresh(job, with_for_update=True)
    return job


def _doom(session: Session, checkpoints: Sequence[Checkpoint]) -> None:
    at = now(session)
    for checkpoint in checkpoints:
        checkpoint.removed_at = checkpoint.doomed_at = at
    session.flush()
    if checkpoints:
        ids = [checkpoint.id for checkpoint in checkpoints]
        feed.tell_rows(session, Topic.CHECKPOINTS, ids, job_id=checkpoints[0].job_id, at=at)


@dataclass(frozen=True)
class _Needs:
    """What of a job's checkpoints somebody still needs, read once for all of them."""

    job: Job
    last: int | None
    """Id of the furthest."""
    running: frozenset[int]
    """Attempts that have not ended."""
    starting: Mapping[int, int]
    """By checkpoint, a job that starts from it."""
    run_dirs: Mapping[int, str]
    """By attempt, that of the node that saves."""

    def why_kept(self, checkpoint: Checkpoint) -> str | None:
        """Return why a checkpoint cannot be removed now, and the way out; None where it can."""
        job = self.job
        if checkpoint.attempt in self.running:
            return (
                f"attempt {checkpoint.attempt} of job {job.id} still runs, and looks after its own; stop the job first"
            )
        if job.state not in _OVER and checkpoint.id == self.last:
            return f"job {job.id} is {job.state} and goes on from it; cancel the job first"
        if checkpoint.id in self.starting:
            return f"job {self.starting[checkpoint.id]} starts from it; cancel that first"
        if not is_within(checkpoint.path, self.run_dirs[checkpoint.attempt]):
            return f"the job's program saved it outside of its run directory, at {checkpoint.path}; remove it there"
        return None


def _needs(session: Session, job: Job) -> _Needs:
    running = select(Attempt.number).where(Attempt.job_id == job.id, Attempt.ended_at.is_(None))
    mine = select(Checkpoint.id).where(Checkpoint.job_id == job.id, Checkpoint.removed_at.is_(None))
    begun = select(Attempt.resume_checkpoint_id, Attempt.job_id)
    begun = begun.where(Attempt.resume_checkpoint_id.in_(mine), Attempt.ended_at.is_(None))
    # Once it has saved one of its own, it goes on from that.
    own = select(Checkpoint.id).where(Checkpoint.job_id == Job.id, Checkpoint.removed_at.is_(None)).exists()
    starts = select(Job.parent_checkpoint_id, Job.id)
    starts = starts.where(Job.parent_checkpoint_id.in_(mine), Job.state.not_in(_OVER), ~own)
    run_dirs = select(Placement.attempt, Placement.run_dir)
    run_dirs = run_dirs.where(Placement.job_id == job.id, Placement.node_rank == 0)
    return _Needs(
        job=job,
        last=session.scalars(_last(job.id)).first(),
        running=frozenset(session.scalars(running)),
        starting={origin: job_id for origin, job_id in session.execute(begun.union(starts)) if origin is not None},
        run_dirs={row.attempt: row.run_dir for row in session.execute(run_dirs)},
    )


def _run_dir(session: Session, checkpoint: Checkpoint) -> str:
    mine = (Placement.job_id == checkpoint.job_id, Placement.attempt == checkpoint.attempt, Placement.node_rank == 0)
    return session.scalars(select(Placement.run_dir).where(*mine)).one()


def _last(job_id: int) -> Select[int]:
    """Return the query for the id of a job's furthest checkpoint."""
    kept = (Checkpoint.job_id == job_id, Checkpoint.removed_at.is_(None))
    return select(Checkpoint.id).where(*kept).order_by(Checkpoint.step.desc(), Checkpoint.id.desc()).limit(1)
