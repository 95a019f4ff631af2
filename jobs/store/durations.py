"""How long jobs have waited and attempts run, over all there ever were: no restart forgets one, none counts twice."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Float, Select, case, cast, func, literal, select
from sqlalchemy.orm import Session

from jobs.tables import Attempt, Job

MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86_400
WAIT_BOUNDS_S = (1, 5, 15, MINUTE_S, 5 * MINUTE_S, 15 * MINUTE_S, HOUR_S, 4 * HOUR_S, 12 * HOUR_S, DAY_S, 3 * DAY_S)
RUN_BOUNDS_S = (10, *WAIT_BOUNDS_S[3:], 7 * DAY_S)


@dataclass(frozen=True)
class Durations:
    """How long something took, each time that it did."""

    bounds_s: Sequence[int]
    counts: Sequence[int]
    """How often it took up to each bound and more than the one before; last, how often more than all of them."""
    sum_s: float


def waits(session: Session) -> Durations:
    """Return how long each job waited that has been given devices, from its submission until it was for the first time.

    Of later attempts nobody knows how much of the time between they were paused.
    """
    everyone = literal("")
    first = Attempt.number == 1
    query = select(everyone).join(Job, Job.id == Attempt.job_id).where(first)
    found = _count(session, query, everyone, Job.created_at, Attempt.created_at, bounds_s=WAIT_BOUNDS_S)
    return found.get("", Durations(WAIT_BOUNDS_S, (0,) * (len(WAIT_BOUNDS_S) + 1), 0.0))


def runs(session: Session) -> Mapping[str, Durations]:
    """Return how long each attempt trained that did and has ended, by its outcome."""
    query = select(Attempt.outcome).where(Attempt.started_at.is_not(None), Attempt.ended_at.is_not(None))
    return _count(session, query, Attempt.outcome, Attempt.started_at, Attempt.ended_at, bounds_s=RUN_BOUNDS_S)


def _count(
    session: Session, query: Select[Any], kind: Any, begin: Any, end: Any, *, bounds_s: Sequence[int]
) -> dict[str, Durations]:
    took = _seconds(session, begin, end)
    bucket = case(*((took <= bound, place) for place, bound in enumerate(bounds_s)), else_=len(bounds_s))
    counted = query.add_columns(bucket, func.count(), func.sum(took)).group_by(kind, bucket)
    counts: dict[str, list[int]] = {}
    sums: dict[str, float] = {}
    for name, place, count, total in session.execute(counted):
        counts.setdefault(name, [0] * (len(bounds_s) + 1))[place] = count
        sums[name] = sums.get(name, 0.0) + total
    return {name: Durations(bounds_s, tuple(counts[name]), sums[name]) for name in counts}


def _seconds(session: Session, begin: Any, end: Any) -> ColumnElement[float]:
    if session.get_bind().dialect.name == "sqlite":
        return (func.julianday(end) - func.julianday(begin)) * DAY_S
    return cast(func.extract("epoch", end - begin), Float)
