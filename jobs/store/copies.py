"""Where checkpoints can be read: the storages they lie in, and their copies under the checkpoint root."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, or_, select, update
from sqlalchemy.orm import Session

from jobs.database import now
from jobs.feed import Topic
from jobs.states import State
from jobs.store import feed
from jobs.store.attempts import fence
from jobs.store.transitions import changed
from jobs.tables import Checkpoint, Host, Job, Placement


@dataclass(frozen=True)
class Place:
    """A storage, and one of the files that lie in it."""

    storage: str
    file: str


def storages_in_use(session: Session, *, known: Sequence[str]) -> list[Place]:
    """Return the storages, other than `known`, of the checkpoints that jobs which are not over may continue from."""
    open_states = [state for state in State if not state.is_terminal]
    of_job = Checkpoint.job_id.in_(select(Job.id).where(Job.state.in_(open_states)))
    started_from = Checkpoint.id.in_(select(Job.parent_checkpoint_id).where(Job.state.in_(open_states)))
    found: dict[str, str] = {}
    for storage, file in ((Checkpoint.storage, Checkpoint.path), (Checkpoint.copy_storage, Checkpoint.copy_url)):
        query = select(storage, func.max(file)).where(
            or_(of_job, started_from),
            *(Checkpoint.removed_at.is_(None), storage.is_not(None), file.is_not(None), storage.not_in(known)),
        )
        found |= {each: example for each, example in session.execute(query.group_by(storage)) if each and example}
    return [Place(storage, file) for storage, file in found.items()]


def has_new(session: Session, *, since: datetime, known: Sequence[str]) -> bool:
    """Whether a checkpoint got its place after `since`, on the database's clock, in a storage other than `known`."""
    elsewhere = or_(Checkpoint.storage.not_in(known), Checkpoint.copy_storage.not_in(known))
    query = select(Checkpoint.id).where(Checkpoint.placed_at > since, Checkpoint.removed_at.is_(None), elsewhere)
    return session.scalars(query.limit(1)).first() is not None


def in_reach(session: Session, host_name: str) -> frozenset[str]:
    """Return the storages that a host says it can read."""
    return frozenset(session.scalars(select(Host.storages).where(Host.name == host_name)).one())


def missing(session: Session, job_id: int, *, storage: str | None) -> Sequence[Checkpoint]:
    """Return a job's checkpoints in this storage that have no copy yet, the furthest first."""
    kept = (Checkpoint.job_id == job_id, Checkpoint.removed_at.is_(None))
    query = select(Checkpoint).where(*kept, Checkpoint.storage == storage, Checkpoint.copy_url.is_(None))
    return session.scalars(query.order_by(Checkpoint.step.desc(), Checkpoint.id.desc())).all()


def paths(session: Session, job_id: int) -> set[str]:
    """Return where a job's checkpoints are, or were, on the hosts that saved them."""
    return set(session.scalars(select(Checkpoint.path).where(Checkpoint.job_id == job_id)))


def left_over(session: Session, job_id: int) -> Sequence[Checkpoint]:
    """Return a job's checkpoints that its trainer has let go of, and that have copies still."""
    removed = (Checkpoint.job_id == job_id, Checkpoint.removed_at.is_not(None))
    query = select(Checkpoint).where(*removed, Checkpoint.copy_url.is_not(None))
    return session.scalars(query.order_by(Checkpoint.id)).all()


def set_copied(session: Session, placement: Placement, checkpoint: Checkpoint, *, url: str, storage: str) -> None:
    """Tell where a checkpoint's copy is, now that it is whole. Raises StaleAttemptError once the attempt has ended."""
    fence(session, placement)
    # A program may have saved another file to this path since: that one has no copy.
    same = (Checkpoint.id == checkpoint.id, Checkpoint.sha256 == checkpoint.sha256)
    at = now(session)
    statement = update(Checkpoint).where(*same)
    if changed(session, statement.values(copy_url=url, copy_storage=storage, placed_at=at)):
        feed.tell_rows(session, Topic.CHECKPOINTS, [checkpoint.id], job_id=placement.job_id, at=at)


def forget_copy(session: Session, placement: Placement, checkpoint: Checkpoint) -> None:
    """Tell that a checkpoint has no copy any more. Raises StaleAttemptError once the attempt has ended."""
    fence(session, placement)
    same = (Checkpoint.id == checkpoint.id, Checkpoint.copy_url == checkpoint.copy_url)
    if changed(session, update(Checkpoint).where(*same).values(copy_url=None, copy_storage=None)):
        feed.tell_rows(session, Topic.CHECKPOINTS, [checkpoint.id], job_id=placement.job_id, at=now(session))
