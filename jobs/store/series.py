"""Metric series as they are drawn and exported: which a job has, few values of many, and all of them by pieces."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import CompoundSelect, Row, Select, Subquery, case, func, literal, select, tuple_, union_all
from sqlalchemy.orm import Session

from jobs.store import bulk, reports
from jobs.store.buckets import SPAN, is_newest
from jobs.tables import Metric, MetricBucket

PIECE_ROWS = 5000
"""Values in one piece of an export."""


MetricRow = Row[Any]
"""A row of the table of metrics."""


@dataclass(frozen=True)
class Summary:
    """What the whole series of one metric comes to."""

    name: str
    count: int
    """Steps that have a value."""
    first_step: int
    last: Metric
    """Its value at the last step."""


class Stretch(NamedTuple):
    """What a stretch of a series comes to."""

    values: int
    lowest_step: int | None
    """Of equal values, the first; None where none is finite."""
    highest_step: int | None
    gap_step: int | None
    """The first step whose value is not finite."""


def summaries(session: Session, job_id: int) -> list[Summary]:
    """Return what each metric of a job comes to, by name."""
    bucket = MetricBucket
    found = session.execute(
        select(
            bucket.name,
            func.sum(bucket.count).label("values"),
            func.min(bucket.first_step).label("first_step"),
            func.max(bucket.last_step).label("last_step"),
        )
        .where(bucket.job_id == job_id)
        .group_by(bucket.name)
        .order_by(bucket.name)
    ).all()
    ends = tuple_(Metric.name, Metric.step).in_([(row.name, row.last_step) for row in found])
    last = {each.name: each for each in session.scalars(reports.select_metrics(job_id).where(ends))}
    return [Summary(row.name, int(row.values), row.first_step, last[row.name]) for row in found]


def thinned(
    session: Session, job_id: int, name: str, *, points: int, from_step: int = 0, to_step: int | None = None
) -> Sequence[MetricRow]:
    """Return at most `points` (2 or more) values of a series, by step, or all of them where there are no more.

    The steps are divided into stretches of one length. Of each are kept the lowest and the highest value, and the first
    that is not finite; besides these, the first and the last value of all. Where stretches are longer than buckets they
    are whole numbers of them, and only those at both ends are read value by value.
    """
    query = _select_rows(job_id, [name], from_step, to_step)
    ends = _ends(session, job_id, name, from_step, to_step)
    if ends is None:
        return []
    first, last = ends
    # Few buckets, of values that are soon read: they would leave most of the points unused.
    unit = 1 if 4 * (last // SPAN - first // SPAN + 1) < points else SPAN
    cells = _cells(job_id, name, first, last, unit=unit).subquery()
    units = last // unit - first // unit + 1
    for of_a_stretch in (2, 3):
        stretches = (points - 2) // of_a_stretch
        found = _stretches(session, cells, first=first // unit, units=-(-units // max(stretches, 1)))
        if all(each.gap_step is None for each in found):
            break
    if sum(each.values for each in found) > points:
        kept = {first, last}
        if stretches:
            kept.update(step for each in found for step in each[1:] if step is not None)
        query = query.where(bulk.is_any_of(session, Metric.step, sorted(kept)))
    return session.execute(query).all()


def select_piece(
    job_id: int,
    *,
    names: Sequence[str],
    from_step: int,
    to_step: int | None,
    after: tuple[str, int] | None,
) -> Select[Any]:
    """Return the query for the next PIECE_ROWS values of a job's series, which follow the name and step `after`."""
    query = _select_rows(job_id, names, from_step, to_step).limit(PIECE_ROWS)
    if after is not None:
        query = query.where(tuple_(Metric.name, Metric.step) > tuple_(*map(literal, after)))
    return query


def _select_rows(job_id: int, names: Sequence[str], from_step: int, to_step: int | None) -> Select[Any]:
    """As plain rows: objects of thousands of values, which nobody changes, take longer than all the rest."""
    query = reports.select_metrics(job_id, names=names, from_step=from_step, to_step=to_step)
    return query.with_only_columns(*Metric.__table__.columns)


def _ends(session: Session, job_id: int, name: str, from_step: int, to_step: int | None) -> tuple[int, int] | None:
    """The first and the last step of a series within the limits; None where it has none there."""
    here = [Metric.job_id == job_id, Metric.name == name, Metric.step >= from_step]
    if to_step is not None:
        here.append(Metric.step <= to_step)
    ends: Sequence[int | None] = session.execute(
        select(func.min(Metric.step), func.max(Metric.step)).where(*here)
    ).one()
    first, last = ends
    return None if first is None or last is None else (first, last)


def _cells(job_id: int, name: str, first: int, last: int, *, unit: int) -> CompoundSelect[Any]:
    """What there is between two steps, by units of so many: single values, and of SPAN steps whole buckets in between.

    A value is a bucket of its own, whose lowest and highest it is; one that is not finite is a gap.
    """
    step, value = Metric.step, Metric.value
    there = case((value.is_not(None), step))
    single = (literal(1).label("count"), value.label("lowest"), there.label("lowest_step"), value.label("highest"))
    columns = (*single, there.label("highest_step"), case((value.is_(None), step)).label("gap_step"))
    values = select((step // unit).label("unit"), *columns).where(
        Metric.job_id == job_id, Metric.name == name, step >= first, step <= last, is_newest()
    )
    bucket = MetricBucket
    whole = range(-(-first // unit), (last + 1) // unit) if unit == SPAN else range(0)
    buckets = select(
        *(bucket.bucket, bucket.count, bucket.lowest, bucket.lowest_step, bucket.highest, bucket.highest_step),
        bucket.gap_step,
    ).where(bucket.job_id == job_id, bucket.name == name, bucket.bucket >= whole.start, bucket.bucket < whole.stop)
    return union_all(
        values.where(step < whole.start * unit) if whole else values,
        buckets,
        *([values.where(step >= whole.stop * unit)] if whole else []),
    )


def _stretches(session: Session, cells: Subquery, *, first: int, units: int) -> list[Stretch]:
    """What each stretch of `units` comes to, of which the first begins with the unit `first`."""
    stretch = ((cells.c.unit - first) // units).label("stretch")
    inner = select(stretch, *(column for column in cells.c if column.key != "unit")).subquery().c
    least = func.min(inner.lowest).over(partition_by=inner.stretch).label("least")
    most = func.max(inner.highest).over(partition_by=inner.stretch).label("most")
    ranked = select(*inner, least, most).subquery().c
    found = session.execute(
        select(
            func.sum(ranked["count"]),
            func.min(case((ranked.lowest == ranked.least, ranked.lowest_step))),
            func.min(case((ranked.highest == ranked.most, ranked.highest_step))),
            func.min(ranked.gap_step),
        ).group_by(ranked.stretch)
    )
    return [Stretch(*row) for row in found]
