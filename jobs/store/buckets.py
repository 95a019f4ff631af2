"""Buckets: what each stretch of a metric series comes to, kept beside the values.

Values that come after all that are known of their stretch are counted on (`extend`), which reads none of the others. A
bucket that is told of anything else is worked out anew from its rows (`refresh`): so a report that is told twice
changes nothing, and an attempt that goes over the steps of an earlier one takes its place.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from sqlalchemy import ColumnElement, Select, Table, and_, case, func, or_, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session, aliased

from jobs.store import bulk
from jobs.store.feed import Value
from jobs.tables import Metric, MetricBucket

SPAN = 64
"""Steps of a bucket."""

Stretch = tuple[int, int]
"""The first and the last of buckets that lie side by side."""


def extend(session: Session, job_id: int, values: Sequence[Value]) -> bool:
    """Count values on in their buckets, where all of them come after those that are known there.

    False where some do not: then `refresh` has to bring the buckets up to date once the values are stored. True tells
    as well that no attempt has a value at any of these steps yet.
    """
    members = _by_bucket(values)
    if sum(map(len, members.values())) < len(values):
        return False  # one step twice
    bucket = MetricBucket
    insert = _insert(session)
    new = insert.excluded
    is_lower = or_(bucket.lowest.is_(None), new.lowest < bucket.lowest)
    is_higher = or_(bucket.highest.is_(None), new.highest > bucket.highest)
    longer = {
        "count": bucket.count + new.count,
        "last_step": new.last_step,
        "lowest": case((is_lower, new.lowest), else_=bucket.lowest),
        "lowest_step": case((is_lower, new.lowest_step), else_=bucket.lowest_step),
        "highest": case((is_higher, new.highest), else_=bucket.highest),
        "highest_step": case((is_higher, new.highest_step), else_=bucket.highest_step),
        "gap_step": func.coalesce(bucket.gap_step, new.gap_step),
    }
    upsert = insert.on_conflict_do_update(index_elements=_KEY, set_=longer, where=bucket.last_step < new.first_step)
    rows = [(job_id, *key, *_summary(of_step)) for key, of_step in members.items()]
    return bulk.insert_rows(session, upsert, _COLUMNS, rows) == len(rows)


def refresh(session: Session, job_id: int, written: Iterable[tuple[str, int]]) -> None:
    """Bring the buckets of these names and steps up to date; the pairs are in the order in which they were reported."""
    steps_of: dict[str, list[int]] = {}
    for name, step in written:
        steps_of.setdefault(name, []).append(step)
    names_of: dict[Stretch, list[str]] = {}
    for name, steps in steps_of.items():
        for stretch in set(_ascents(steps)):
            names_of.setdefault(stretch, []).append(name)
    for (first, last), names in names_of.items():
        filled = _insert(session).from_select(_COLUMNS, _summaries(job_id, names, first=first, last=last))
        news = {column: filled.excluded[column] for column in _COLUMNS if column not in _KEY}
        session.execute(filled.on_conflict_do_update(index_elements=_KEY, set_=news))


def is_newest() -> ColumnElement[bool]:
    """Return the condition that no later attempt has reported the same metric at the same step."""
    # By a look at the key for each row. Joined (NOT EXISTS), PostgreSQL without statistics compares all with all.
    same = aliased(Metric)
    here = (same.job_id == Metric.job_id, same.name == Metric.name, same.step == Metric.step)
    return Metric.attempt == select(func.max(same.attempt)).where(*here).scalar_subquery()


def _by_bucket(values: Iterable[Value]) -> dict[tuple[str, int], dict[int, float | None]]:
    """The values by name and bucket, and there by step."""
    members: dict[tuple[str, int], dict[int, float | None]] = {}
    for name, step, _, _, value, _ in values:
        members.setdefault((name, step // SPAN), {})[step] = value
    return members


def _summary(of_step: dict[int, float | None]) -> tuple[object, ...]:
    """What the bucket of these values comes to without any others: all that is none of its key."""
    first_step_of = {value: step for step, value in sorted(of_step.items(), reverse=True)}
    finite = [value for value in of_step.values() if value is not None]
    extremes: tuple[object, ...] = (None,) * 4
    if finite:
        lowest, highest = min(finite), max(finite)
        extremes = (lowest, first_step_of[lowest], highest, first_step_of[highest])
    return (len(of_step), min(of_step), max(of_step), *extremes, first_step_of.get(None))


def _ascents(steps: Sequence[int]) -> Iterator[Stretch]:
    """The buckets from each step at which a series begins to ascend to that at which it stops.

    What lies between two steps of one ascent was written just now, or by earlier attempts: never the rest of a series.
    """
    first = steps[0]
    for step, following in pairwise([*steps, -1]):
        if following < step:
            yield first // SPAN, step // SPAN
            first = following


def _summaries(job_id: int, names: Sequence[str], *, first: int, last: int) -> Select[tuple[object, ...]]:
    """The rows of the buckets from `first` to `last`, from the values there."""
    bucket = (Metric.step // SPAN).label("bucket")
    of_bucket = (Metric.name, bucket)
    upwards = func.row_number().over(partition_by=of_bucket, order_by=(Metric.value.asc().nulls_last(), Metric.step))
    downwards = func.row_number().over(partition_by=of_bucket, order_by=(Metric.value.desc().nulls_last(), Metric.step))
    steps = (Metric.step >= first * SPAN, Metric.step <= last * SPAN + SPAN - 1)
    here = (Metric.job_id == job_id, Metric.name.in_(names), *steps)
    columns = (Metric.job_id, Metric.name, bucket, Metric.step, Metric.value)
    ranked = (
        select(*columns, upwards.label("upwards"), downwards.label("downwards")).where(*here, is_newest()).subquery()
    )
    value, step = ranked.c.value, ranked.c.step
    return select(
        *(ranked.c.job_id, ranked.c.name, ranked.c.bucket, func.count(), func.min(step), func.max(step)),
        *(func.min(value), func.min(case((and_(ranked.c.upwards == 1, value.is_not(None)), step)))),
        *(func.max(value), func.min(case((and_(ranked.c.downwards == 1, value.is_not(None)), step)))),
        func.min(case((value.is_(None), step))),
    ).group_by(ranked.c.job_id, ranked.c.name, ranked.c.bucket)


def _insert(session: Session) -> postgresql.Insert | sqlite.Insert:
    is_sqlite = session.get_bind().dialect.name == "sqlite"
    return (sqlite.insert if is_sqlite else postgresql.insert)(_TABLE)


_TABLE: Table = MetricBucket.__table__  # type: ignore[assignment]  # it is one, which mypy is not told
_COLUMNS = [column.name for column in _TABLE.columns]
_KEY = [column.name for column in _TABLE.primary_key]
