"""Lineage: the checkpoint of another job that a job starts from, settled once when the job is submitted."""

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from jobs.errors import InvalidSpecError
from jobs.spec import StartFrom
from jobs.states import State
from jobs.tables import Checkpoint, Job

KEPT = "a job keeps its last two checkpoints and the best"


def find_checkpoint(session: Session, wanted: StartFrom) -> Checkpoint:
    """Return the checkpoint that a job is to start from: the one named, or else the furthest or the best there is.

    Raises InvalidSpecError, naming the field, where there is no such job or checkpoint, or its file is gone.
    """
    if session.get(Job, wanted.job) is None:
        raise InvalidSpecError("start_from.job", f"no job {wanted.job}")
    query = select(Checkpoint).where(Checkpoint.job_id == wanted.job, Checkpoint.removed_at.is_(None))
    kept = session.scalars(query.order_by(Checkpoint.step.desc(), Checkpoint.id.desc())).all()
    if not kept:
        raise InvalidSpecError("start_from.job", f"job {wanted.job} has no checkpoint to start from")
    if wanted.checkpoint is not None:
        return _named(session, wanted, kept)
    # A program of one's own may never say which is its best; the furthest has to do then.
    best = [each for each in kept if each.best] if wanted.mode == "weights" else []
    return (best or kept)[0]


def hold(session: Session, origin: Checkpoint) -> None:
    """Keep users from removing a checkpoint until this transaction is over, which stores a job that starts from it.

    Raises InvalidSpecError where it was removed just now.
    """
    # The job's row, as who removes one holds it while they look who needs it: with that of the checkpoint alone, they
    # would wait only after that look. Runs of the job, which change the rest of the row, go on.
    its_job = select(Job.id).where(Job.id == origin.job_id)
    session.execute(its_job.with_for_update(read=True, key_share=True))
    session.refresh(origin)
    if origin.removed_at is not None:
        raise InvalidSpecError("start_from.checkpoint", f"checkpoint {origin.id} was removed just now")


def warn_of_removal(session: Session, origin: Checkpoint) -> str | None:
    """Return what the submitter should know where the job that saved `origin` may yet let go of the file."""
    job = session.get_one(Job, origin.job_id)
    if State(job.state).is_terminal:
        return None
    return (
        f"job {job.id} is {job.state} and may save more; {KEPT}, so checkpoint {origin.id} (step {origin.step}) may be "
        "gone when this job starts, which then fails"
    )


def _named(session: Session, wanted: StartFrom, kept: Sequence[Checkpoint]) -> Checkpoint:
    for checkpoint in kept:
        if checkpoint.id == wanted.checkpoint:
            return checkpoint
    row = session.get(Checkpoint, wanted.checkpoint)
    if row is not None and row.job_id == wanted.job:
        problem = f"the file of checkpoint {row.id} was removed ({KEPT})"
    else:
        problem = f"job {wanted.job} has no checkpoint {wanted.checkpoint}"
    listed = ", ".join(f"{each.id} (step {each.step}{', best' if each.best else ''})" for each in kept[:8])
    raise InvalidSpecError("start_from.checkpoint", f"{problem}; there is {listed}")
