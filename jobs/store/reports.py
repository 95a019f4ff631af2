"""What runs report: metrics, checkpoints and logs; written by shipping, read by users.

Writing the last report once more changes nothing. That none comes again after later ones is what `attempts.advance`
sees to, in the same transaction. Every writer raises StaleAttemptError once the attempt has ended, and then writes
nothing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any, NamedTuple

from sqlalchemy import Select, Table, Update, and_, insert, not_, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from jobs.column_types import storable
from jobs.database import now
from jobs.feed import Topic
from jobs.store import buckets, bulk, feed, outbox
from jobs.store.attempts import fence
from jobs.tables import Base, Checkpoint, LogChunk, Metric, Placement

LONGEST_NAME = 255
"""Characters of a metric's name."""


class MetricPoint(NamedTuple):
    """One value after one step; `value` is None where it is not finite, and `kind` says what it was."""

    name: str
    step: int
    epoch: int
    at: datetime
    value: float | None
    kind: str | None = None


@dataclass(frozen=True)
class CheckpointFile:
    """A committed checkpoint, and the paths of those it replaces."""

    path: str
    step: int
    epoch: int
    sha256: str
    size_bytes: int
    best: bool
    values: dict[str, float | None]
    at: datetime
    removed: Sequence[str] = ()
    storage: str | None = None
    """Id of the storage that it lies in; None for a file that only its own host is known to have."""


@dataclass(frozen=True)
class LogPiece:
    """A piece of one rank's output, beginning at byte `offset` of its log."""

    rank: int
    offset: int
    text: str


def add_metrics(session: Session, placement: Placement, points: Sequence[MetricPoint]) -> None:
    """Store metric values, and what they make of their series."""
    fence(session, placement)
    if not points:
        return
    names = {name: _stored_name(name) for name in {point.name for point in points}}
    if any(name != stored for name, stored in names.items()):
        points = [point._replace(name=names[point.name]) for point in points]
    job_id, attempt = placement.job_id, placement.attempt
    rows = ((job_id, attempt, *point) for point in points)
    if buckets.extend(session, job_id, points):
        _store(session, rows)
    else:
        # The table, not its class: a bulk insert of the ORM does not tell how many.
        statement = _insert_if_new(session, Metric.__table__)  # type: ignore[arg-type]  # a Table, which mypy is not told
        if not bulk.insert_rows(session, statement, _COLUMNS, list(rows)):
            return
        buckets.refresh(session, job_id, [(point.name, point.step) for point in points])
    feed.tell_metrics(session, points, job_id=job_id, attempt=attempt, at=now(session))


def add_checkpoint(session: Session, placement: Placement, file: CheckpointFile) -> None:
    """Store a checkpoint, and mark those it replaces as removed."""
    fence(session, placement)
    row: dict[str, Any] = {
        "job_id": placement.job_id,
        "attempt": placement.attempt,
        "host_name": placement.host_name,
        "path": file.path,
        "step": file.step,
        "epoch": file.epoch,
        "sha256": file.sha256,
        "size_bytes": file.size_bytes,
        "best": file.best,
        "values": file.values,
        "created_at": file.at,
        "storage": file.storage,
        "placed_at": now(session),
    }
    told = list(session.scalars(_insert_if_new(session, Checkpoint).returning(Checkpoint.id), row))
    if not told:
        # Another save to this path comes after the known one, as in the journal: neither the time nor the step tells,
        # since the host's clock may have been set back and the program's steps may have begun anew.
        is_known = (Checkpoint.step == file.step, Checkpoint.sha256 == file.sha256, Checkpoint.created_at == file.at)
        written_over = (
            *(Checkpoint.job_id == placement.job_id, Checkpoint.attempt == placement.attempt),
            *(Checkpoint.path == file.path, not_(and_(*is_known))),
        )
        # A program may save to one path again and again: what its first file was is no use to anybody.
        anew = {"removed_at": None, "doomed_at": None, "copy_url": None, "copy_storage": None}
        told = _changed(session, update(Checkpoint).where(*written_over).values(**row, **anew))
        if not told:
            return  # told before: since then another may have become the best
    if file.best:
        mine = (Checkpoint.job_id == placement.job_id, Checkpoint.best)
        told += _changed(session, update(Checkpoint).where(*mine, Checkpoint.path != file.path).values(best=False))
        outbox.tell_of_best(session, placement, file.path)
    if file.removed:
        gone = (Checkpoint.job_id == placement.job_id, Checkpoint.path.in_(file.removed))
        statement = update(Checkpoint).where(*gone, Checkpoint.removed_at.is_(None))
        told += _changed(session, statement.values(removed_at=now(session)))
    feed.tell_rows(session, Topic.CHECKPOINTS, told, job_id=placement.job_id, at=row["placed_at"])


def set_removed(session: Session, placement: Placement, path: str) -> None:
    """Mark a checkpoint of the job as removed: its own host has no such file any more."""
    fence(session, placement)
    gone = (Checkpoint.job_id == placement.job_id, Checkpoint.path == path, Checkpoint.removed_at.is_(None))
    at = now(session)
    told = _changed(session, update(Checkpoint).where(*gone).values(removed_at=at))
    feed.tell_rows(session, Topic.CHECKPOINTS, told, job_id=placement.job_id, at=at)


def add_logs(session: Session, placement: Placement, pieces: Sequence[LogPiece]) -> None:
    """Store pieces of the ranks' output."""
    fence(session, placement)
    at = now(session)
    rows = [
        {
            "job_id": placement.job_id,
            "attempt": placement.attempt,
            "rank": piece.rank,
            "offset": piece.offset,
            "text": storable(piece.text),
            "at": at,
        }
        for piece in pieces
    ]
    if rows:
        told = session.scalars(_insert_if_new(session, LogChunk).returning(LogChunk.id), rows).all()
        feed.tell_rows(session, Topic.LOGS, told, job_id=placement.job_id, at=at)


def select_metrics(
    job_id: int, *, names: Sequence[str] | None = None, from_step: int = 0, to_step: int | None = None
) -> Select[Metric]:
    """Return the query for a job's metric series: for each name and step the value of the newest attempt there.

    It may be limited to some names, and to the steps from `from_step` up to and with `to_step`.
    """
    query = select(Metric).where(Metric.job_id == job_id, Metric.step >= from_step, buckets.is_newest())
    if to_step is not None:
        query = query.where(Metric.step <= to_step)
    if names:
        query = query.where(Metric.name.in_(names))
    return query.order_by(Metric.name, Metric.step)


def select_checkpoints(job_id: int, *, with_removed: bool = False) -> Select[Checkpoint]:
    """Return the query for a job's checkpoints, oldest first."""
    query = select(Checkpoint).where(Checkpoint.job_id == job_id).order_by(Checkpoint.id)
    return query if with_removed else query.where(Checkpoint.removed_at.is_(None))


def resumable(session: Session, job_id: int) -> Sequence[Checkpoint]:
    """Return the checkpoints a new attempt may continue from, the furthest first."""
    query = select_checkpoints(job_id).order_by(None)
    return session.scalars(query.order_by(Checkpoint.step.desc(), Checkpoint.id.desc())).all()


def select_logs(
    job_id: int, *, rank: int | None = None, attempt: int | None = None, after: int = 0
) -> Select[LogChunk]:
    """Return the query for a job's output with ids above `after`, in the order it was shipped.

    Only one supervisor writes for a job at a time, so ids become visible in order within a job.
    """
    query = select(LogChunk).where(LogChunk.job_id == job_id, LogChunk.id > after)
    if rank is not None:
        query = query.where(LogChunk.rank == rank)
    if attempt is not None:
        query = query.where(LogChunk.attempt == attempt)
    return query.order_by(LogChunk.id)


def _stored_name(name: str) -> str:
    """A metric's name as it is stored: one that is too long is cut, and stays another than any with the same begin."""
    text = storable(name)
    if len(text) <= LONGEST_NAME:
        return text
    return f"{text[: LONGEST_NAME - 9]}…{sha256(text.encode()).hexdigest()[:8]}"


def _store(session: Session, values: Iterable[tuple[object, ...]]) -> None:
    """Insert metric values of which none is there yet, as rows of _COLUMNS."""
    if session.get_bind().dialect.name == "sqlite":
        session.execute(insert(Metric), [dict(zip(_COLUMNS, row, strict=True)) for row in values])
    else:
        bulk.copy_rows(session, Metric.__tablename__, _COLUMNS, values)


def _changed(session: Session, statement: Update) -> list[int]:
    """Execute an UPDATE of checkpoints, and return the ids of those that it changed."""
    options = {"synchronize_session": False}
    return list(session.scalars(statement.returning(Checkpoint.id), execution_options=options))


def _insert_if_new(session: Session, table: type[Base] | Table) -> postgresql.Insert | sqlite.Insert:
    """An INSERT that passes over the rows that are there already."""
    if session.get_bind().dialect.name == "sqlite":
        return sqlite.insert(table).on_conflict_do_nothing()
    return postgresql.insert(table).on_conflict_do_nothing()


_COLUMNS = ("job_id", "attempt", *MetricPoint._fields)
"""Of the table of metrics, in the order in which its rows are handed over here."""
