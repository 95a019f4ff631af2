"""Buckets: what each stretch of a metric series comes to, kept beside the values.

A bucket is worked out anew from its rows whenever one of them is written, rather than counted on: so a report that is
told twice changes nothing, and an attempt that goes over the steps of an earlier one takes its place.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from sqlalchemy import ColumnElement, Insert, Select, and_, case, func, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session, aliased

from jobs.tables import Metric, MetricBucket

SPAN = 64
"""Steps of a bucket."""

Stretch = tuple[int, int]
"""The first and the last of buckets that lie side by side."""


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
        session.execute(_upsert(session, _summaries(job_id, names, first=first, last=last)))


def is_newest() -> ColumnElement[bool]:
    """Return the condition that no later attempt has reported the same metric at the same step."""
    # By a look at the key for each row. Joined (NOT EXISTS), PostgreSQL without statistics compares all with all.
    same = aliased(Metric)
    here = (same.job_id == Metric.job_id, same.name == Metric.name, same.step == Metric.step)
    return Metric.attempt == select(func.max(same.attempt)).where(*here).scalar_subquery()


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
        *(ranked.c.job_id, ranked.c.name, ranked.c.bucket, func.count()),
        *(func.min(value), func.min(case((and_(ranked.c.upwards == 1, value.is_not(None)), step)))),
        *(func.max(value), func.min(case((and_(ranked.c.downwards == 1, value.is_not(None)), step)))),
        func.min(case((value.is_(None), step))),
    ).group_by(ranked.c.job_id, ranked.c.name, ranked.c.bucket)


def _upsert(session: Session, rows: Select[tuple[object, ...]]) -> Insert:
    """An INSERT that takes the place of what the buckets were before."""
    is_sqlite = session.get_bind().dialect.name == "sqlite"
    insert = (sqlite.insert if is_sqlite else postgresql.insert)(MetricBucket)
    key = [column.name for column in MetricBucket.__table__.primary_key]
    columns = [column.name for column in MetricBucket.__table__.columns]
    filled = insert.from_select(columns, rows)
    news = {column: filled.excluded[column] for column in columns if column not in key}
    return filled.on_conflict_do_update(index_elements=key, set_=news)
