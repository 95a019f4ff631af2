"""Metric series as they are drawn and exported: which a job has, few values of many, and all of them by pieces."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from sqlalchemy import Select, case, func, literal, select, tuple_
from sqlalchemy.orm import Session

from jobs.store import reports
from jobs.store.buckets import SPAN, is_newest
from jobs.tables import Metric, MetricBucket

PIECE_ROWS = 5000
"""Values in one piece of an export."""


@dataclass(frozen=True)
class Summary:
    """What the whole series of one metric comes to."""

    name: str
    count: int
    """Steps that have a value."""
    first_step: int
    last: Metric
    """Its value at the last step."""


class Cell(NamedTuple):
    """One value of a series, or what a bucket of them comes to."""

    step: int
    """Of the value; of a bucket, the first that it may hold."""
    values: int
    lowest: float | None
    lowest_step: int | None
    highest: float | None
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
) -> Sequence[Metric]:
    """Return at most `points` (2 or more) values of a series, by step, or all of them where there are no more.

    The steps are divided into stretches of one length. Of each are kept the lowest and the highest value, and the first
    that is not finite; besides these, the first and the last value of all. Where stretches are longer than buckets they
    are whole numbers of them, and only those at both ends are read value by value.
    """
    query = reports.select_metrics(job_id, names=[name], from_step=from_step, to_step=to_step)
    ends = _ends(session, job_id, name, from_step, to_step)
    if ends is None:
        return []
    first, last = ends
    # Few buckets, of values that are soon read: they would leave most of the points unused.
    unit = 1 if 4 * (last // SPAN - first // SPAN + 1) < points else SPAN
    cells = _values(session, job_id, name, first, last) if unit == 1 else _cells(session, job_id, name, first, last)
    if sum(cell.values for cell in cells) > points:
        query = query.where(Metric.step.in_(sorted(_kept(cells, first, last, unit=unit, points=points))))
    return session.scalars(query).all()


def select_piece(
    job_id: int,
    *,
    names: Sequence[str],
    from_step: int,
    to_step: int | None,
    after: tuple[str, int] | None,
) -> Select[Metric]:
    """Return the query for the next PIECE_ROWS values of a job's series, which follow the name and step `after`."""
    query = reports.select_metrics(job_id, names=names, from_step=from_step, to_step=to_step).limit(PIECE_ROWS)
    if after is not None:
        query = query.where(tuple_(Metric.name, Metric.step) > tuple_(*map(literal, after)))
    return query


def _ends(session: Session, job_id: int, name: str, from_step: int, to_step: int | None) -> tuple[int, int] | None:
    """The first and the last step of a series within the limits; None where it has none there."""
    here = [Metric.job_id == job_id, Metric.name == name, Metric.step >= from_step]
    if to_step is not None:
        here.append(Metric.step <= to_step)
    first, last = (session.scalar(select(end(Metric.step)).where(*here)) for end in (func.min, func.max))
    return None if first is None or last is None else (first, last)


def _cells(session: Session, job_id: int, name: str, first: int, last: int) -> list[Cell]:
    """The buckets that lie between two steps, and the values before and after these, by step."""
    begin, end = -(-first // SPAN), (last + 1) // SPAN
    return [
        *_values(session, job_id, name, first, min(begin * SPAN - 1, last)),
        *_buckets(session, job_id, name, begin, end),
        *_values(session, job_id, name, max(begin, end) * SPAN, last),
    ]


def _values(session: Session, job_id: int, name: str, first: int, last: int) -> list[Cell]:
    if first > last:
        return []
    step, value = Metric.step, Metric.value
    there = case((value.is_not(None), step))
    gap = case((value.is_(None), step))
    here = (Metric.job_id == job_id, Metric.name == name, step >= first, step <= last, is_newest())
    query = select(step, literal(1), value, there, value, there, gap).where(*here).order_by(step)
    return [Cell(*row) for row in session.execute(query)]


def _buckets(session: Session, job_id: int, name: str, begin: int, end: int) -> list[Cell]:
    bucket = MetricBucket
    columns = (bucket.count, bucket.lowest, bucket.lowest_step, bucket.highest, bucket.highest_step, bucket.gap_step)
    here = (bucket.job_id == job_id, bucket.name == name, bucket.bucket >= begin, bucket.bucket < end)
    query = select(bucket.bucket * SPAN, *columns).where(*here).order_by(bucket.bucket)
    return [Cell(*row) for row in session.execute(query)]


def _kept(cells: Sequence[Cell], first: int, last: int, *, unit: int, points: int) -> set[int]:
    """The steps of the values that are kept, with stretches of a whole number of `unit` steps."""
    kept = {first, last}
    of_a_stretch = 2 if all(cell.gap_step is None for cell in cells) else 3
    stretches = (points - 2) // of_a_stretch
    if stretches == 0:
        return kept
    units = -(-(last // unit - first // unit + 1) // stretches)
    for _, stretch in groupby(cells, key=lambda cell: (cell.step // unit - first // unit) // units):
        kept.update(_extremes(stretch))
    return kept


def _extremes(stretch: Iterable[Cell]) -> Iterator[int]:
    """The steps of the lowest and the highest value and of the first gap; of equal values, the first."""
    cells = list(stretch)
    lowest = [(cell.lowest, cell.lowest_step) for cell in cells if cell.lowest is not None]
    highest = [(-cell.highest, cell.highest_step) for cell in cells if cell.highest is not None]
    gaps = [cell.gap_step for cell in cells if cell.gap_step is not None]
    for extremes in (lowest, highest):
        if extremes:
            _, step = min(extremes)
            assert step is not None, "a value has its step"
            yield step
    if gaps:
        yield gaps[0]
