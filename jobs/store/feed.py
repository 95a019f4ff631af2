"""The feed: what happened, in the order in which it became visible, for those who follow.

An entry is written by whoever writes what it tells of, in the same transaction, so neither is ever there without the
other. It holds the news itself where that is small and changes later, else where to find it:

- `jobs`: `{"event": id}` of a job event, or `{"progress": {…}}`;
- `metrics`: `{"attempt": n, "records": [[step, epoch, at, {name: value, …}], …]}`, with at most `VALUES` values in all;
  in place of one that is not finite stands its kind;
- `logs`, `checkpoints`: `{"ids": […]}`;
- `hosts`: `{"host": name, "change": what}`.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    and_,
    delete,
    exists,
    func,
    insert,
    literal,
    literal_column,
    or_,
    select,
    true,
    tuple_,
)
from sqlalchemy.orm import Session

from jobs.database import now
from jobs.feed import START, Position, Topic
from jobs.tables import Checkpoint, FeedEntry, JobEvent, LogChunk

VALUES = 1000
"""Metric values in one entry: followers are handed whole entries."""
KEYS = 1000
"""Rows that are asked for by their ids at once."""
FORGOTTEN_AT_ONCE = 5000
"""Entries that one transaction deletes."""

_OLDEST_LIVE = literal_column("pg_snapshot_xmin(pg_current_snapshot())::text::bigint", BigInteger())
_LAST_OVER = literal_column("pg_snapshot_xmax(pg_current_snapshot())::text::bigint - 1", BigInteger())
_THIS = literal_column("pg_current_xact_id()::text::bigint", BigInteger())

Value = tuple[str, int, int, datetime, float | None, str | None]
"""What was measured: name, step, epoch, time, and the value, or its kind where it is not finite."""
Told = TypeVar("Told", JobEvent, LogChunk, Checkpoint)
Item = TypeVar("Item")


def tell(session: Session, topic: Topic, detail: dict[str, Any], *, job_id: int | None, at: datetime) -> None:
    """Write an entry; `at` is the database's time."""
    _write(session, topic, [detail], job_id=job_id, at=at)


def tell_metrics(session: Session, values: Sequence[Value], *, job_id: int, attempt: int, at: datetime) -> None:
    """Write what an attempt has measured."""
    details = [{"attempt": attempt, "records": _records(some)} for some in _in_parts(values, VALUES)]
    _write(session, Topic.METRICS, details, job_id=job_id, at=at)


def values_of(records: Sequence[Sequence[Any]]) -> Iterator[Value]:
    """Return the values in the `records` of an entry, in the order in which they were measured."""
    for step, epoch, at, values in records:
        moment = datetime.fromisoformat(at)
        for name, value in values.items():
            is_finite = isinstance(value, float | int)
            yield name, step, epoch, moment, value if is_finite else None, None if is_finite else value


def tell_rows(session: Session, topic: Topic, ids: Collection[int], *, job_id: int, at: datetime) -> None:
    """Write which pieces of output, or which checkpoints, there are or have changed; nothing where that is none."""
    if ids:
        tell(session, topic, {"ids": sorted(ids)}, job_id=job_id, at=at)


def tell_host(session: Session, name: str, change: str, *, at: datetime | None = None) -> None:
    """Write what became of a host: `registered`, `drained`, …"""
    tell(session, Topic.HOSTS, {"host": name, "change": change}, job_id=None, at=at or now(session))


def read(
    session: Session,
    after: Position,
    *,
    limit: int,
    until: Position | None = None,
    topics: Collection[Topic] = (),
    job_ids: Collection[int] = (),
) -> Sequence[FeedEntry]:
    """Return the entries that come after a position, in order, at most `limit`: of all topics and jobs, or of these.

    Whoever goes on from the last of them misses none and has none twice: only entries are returned before which no
    other can appear any more.
    """
    query = select(FeedEntry).where(_is_settled(session), _is_after(after))
    if until is not None:
        query = query.where(~_is_after(until))
    if topics:
        query = query.where(FeedEntry.topic.in_(topics))
    if job_ids:
        query = query.where(or_(FeedEntry.job_id.in_(job_ids), FeedEntry.topic == Topic.HOSTS))
    return session.scalars(query.order_by(FeedEntry.xid, FeedEntry.id).limit(limit)).all()


def head(session: Session) -> Position:
    """Return the position after which everything comes that a reader of this moment cannot see yet."""
    newest = select(FeedEntry.xid, FeedEntry.id).where(_is_settled(session))
    row = session.execute(newest.order_by(FeedEntry.xid.desc(), FeedEntry.id.desc()).limit(1)).one_or_none()
    return START if row is None else Position(*row)


def reaches_back_to(session: Session, position: Position) -> bool:
    """Whether everything that came after a position is still there. It is not for one that this database never gave."""
    if position == START:
        # The last entry is always kept, so an empty feed never had any.
        oldest = session.scalars(select(FeedEntry.id).order_by(FeedEntry.id).limit(1)).one_or_none()
        return oldest in (None, 1)
    known = select(FeedEntry.id).where(_is_settled(session), FeedEntry.id == position.id, FeedEntry.xid == position.xid)
    return bool(session.scalar(select(exists(known))))


def held_back_s(session: Session) -> float:
    """Return for how many seconds the oldest entry has waited for a transaction that is still under way."""
    if not _is_postgresql(session):
        return 0.0
    waiting = select(func.min(FeedEntry.at)).where(FeedEntry.xid >= _OLDEST_LIVE)
    since = session.scalars(waiting).one_or_none()
    return 0.0 if since is None else max((now(session) - since).total_seconds(), 0.0)


def forget(session: Session, *, older_than: timedelta) -> int:
    """Delete what is older, at most FORGOTTEN_AT_ONCE entries, and return how many those were.

    They go in the order of the feed, so that what comes after an entry that is left is left as well. The last one
    stays: SQLite would begin anew with ids that followers have had.
    """
    place = select(FeedEntry.xid, FeedEntry.id).order_by(FeedEntry.xid, FeedEntry.id)
    young = session.execute(place.where(FeedEntry.at >= now(session) - older_than).limit(1)).one_or_none()
    bound = Position(*young) if young is not None else head(session)
    old = and_(_is_settled(session), ~_is_after(bound), FeedEntry.id != bound.id)
    if _is_postgresql(session):
        # Brought along from another server by a backup: nobody would see them before this one has counted as far.
        old = or_(old, FeedEntry.xid > _LAST_OVER)
    doomed = select(FeedEntry.id).where(old).order_by(FeedEntry.xid, FeedEntry.id).limit(FORGOTTEN_AT_ONCE)
    # Whoever else deletes now has those that are locked.
    ids = session.scalars(doomed.with_for_update(skip_locked=True)).all()
    for some in _in_parts(ids, KEYS):
        session.execute(delete(FeedEntry).where(FeedEntry.id.in_(some)))
    return len(ids)


def rows(session: Session, table: type[Told], ids: Collection[int]) -> Iterator[Told]:
    """Return the rows with these ids that there are."""
    for some in _in_parts(sorted(set(ids)), KEYS):
        yield from session.scalars(select(table).where(table.id.in_(some)))


def _write(
    session: Session, topic: Topic, details: Iterable[dict[str, Any]], *, job_id: int | None, at: datetime
) -> None:
    """Write entries, in their order.

    On PostgreSQL their place is not their transaction's own: one that began to write early and then waited for a job's
    row would tell of it before the one that it waited for. By the last that was over when it was written, it comes
    later.
    """
    xid = func.greatest(_THIS, _LAST_OVER) if _is_postgresql(session) else literal(0)
    entry = insert(FeedEntry).values(xid=xid, at=at, topic=topic, job_id=job_id)
    session.execute(entry, [{"detail": detail} for detail in details])


def _records(values: Sequence[Value]) -> list[list[Any]]:
    """Values by what was measured at once: so each step, epoch and time is written once for all of its names."""
    records: list[list[Any]] = []
    last: tuple[int, int, datetime] | None = None
    by_name: dict[str, float | str | None] = {}
    for name, step, epoch, at, value, kind in values:
        if (step, epoch, at) != last or name in by_name:
            last, by_name = (step, epoch, at), {}
            records.append([step, epoch, at.isoformat(), by_name])
        by_name[name] = kind if value is None else value
    return records


def _is_settled(session: Session) -> ColumnElement[bool]:
    """Whether no entry can appear any more that comes before this one.

    SQLite's transactions write one after the other. PostgreSQL's draw a number when they begin to write, and no entry
    has a place before its own transaction's: what is below the oldest that is under way is complete.
    """
    return FeedEntry.xid < _OLDEST_LIVE if _is_postgresql(session) else true()


def _in_parts(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def _is_after(position: Position) -> ColumnElement[bool]:
    given = tuple_(literal(position.xid, BigInteger()), literal(position.id, BigInteger()))
    return tuple_(FeedEntry.xid, FeedEntry.id) > given


def _is_postgresql(session: Session) -> bool:
    return session.get_bind().dialect.name == "postgresql"
