"""Running jobs as the planner sees them: what they hold, and when they will give it back."""

from collections.abc import Iterator
from datetime import datetime

from sqlalchemy import Row, func, select
from sqlalchemy.orm import Session

from jobs import pace
from jobs.pace import Try
from jobs.planner.request import Request, parse_request
from jobs.planner.view import RunningJob
from jobs.spec import stored_request
from jobs.states import Intent
from jobs.store.attempts import TRY_COLUMNS
from jobs.tables import Attempt, Checkpoint, Job, Lease


def read(session: Session, at: datetime) -> Iterator[RunningJob]:
    """Return every job that holds a device at the database's time `at`."""
    held: dict[tuple[int, int], list[int]] = {}
    leases = select(Lease.job_id, Lease.attempt, Lease.device_id).where(Lease.released_at.is_(None))
    for job_id, attempt, device_id in session.execute(leases.order_by(Lease.id)):
        held.setdefault((job_id, attempt), []).append(device_id)
    earlier = _earlier_tries(session)
    saved = _last_saves(session)
    for row in session.execute(_ROWS):
        if (row.id, row.number) not in held:
            continue  # it began between the two queries, which is possible where no planner's lock is held
        request = _request(session, row)
        current = Try(row.created_at, row.started_at, None, row.resumed_step)
        left_s = _left_s(row, request, [*earlier.get(row.id, ()), current], at)
        yield RunningJob(
            id=row.id,
            attempt=row.number,
            priority=row.priority,
            device_ids=tuple(held[(row.id, row.number)]),
            user=row.user,
            labels=row.labels,
            preemptible=request is not None and request.preemptible,
            saved_at=saved.get((row.id, row.number), row.created_at).timestamp(),
            predicted_end=None if left_s is None else at.timestamp() + left_s,
            is_stopping=row.stop_order is not None or row.intent != Intent.RUN,
        )


_LIVE = select(Lease.job_id, Lease.attempt).where(Lease.released_at.is_(None)).distinct().subquery()
_ROWS = (
    select(
        Job.id,
        Job.priority,
        Job.user,
        Job.labels,
        Job.intent,
        Job.request,
        Job.progress,
        Attempt.number,
        Attempt.created_at,
        Attempt.started_at,
        Attempt.resumed_step,
        Attempt.stop_order,
    )
    .join(_LIVE, _LIVE.c.job_id == Job.id)
    .join(Attempt, (Attempt.job_id == _LIVE.c.job_id) & (Attempt.number == _LIVE.c.attempt))
    .order_by(Job.id)
)


def _left_s(row: Row[*tuple[object, ...]], request: Request | None, tries: list[Try], at: datetime) -> float | None:
    """In how many seconds it will have ended by itself, as far as can be foretold."""
    limit_s = None if request is None else request.time_limit_s
    if limit_s is not None:
        limit_s = max(limit_s - pace.trained_s(tries, at), 0.0)
    return pace.sooner(pace.left_s(tries[-1], row.progress, at), limit_s)


def _request(session: Session, row: Row[*tuple[object, ...]]) -> Request | None:
    """The request of a running job; None where another version started it and this one cannot read it."""
    try:
        if row.request is not None:
            return parse_request(row.request)
        return stored_request(session.scalars(select(Job.spec).where(Job.id == row.id)).one())
    except ValueError:
        return None


def _earlier_tries(session: Session) -> dict[int, list[Try]]:
    """The attempts before the live ones, by job: they count towards a time limit."""
    query = select(Attempt.job_id, *TRY_COLUMNS).join(_LIVE, _LIVE.c.job_id == Attempt.job_id)
    found: dict[int, list[Try]] = {}
    for row in session.execute(query.where(Attempt.number < _LIVE.c.attempt)):
        earlier = Try(row.created_at, row.started_at, row.ranks_ended_at, row.resumed_step)
        found.setdefault(row.job_id, []).append(earlier)
    return found


def _last_saves(session: Session) -> dict[tuple[int, int], datetime]:
    """When each live attempt saved last."""
    mine = (Checkpoint.job_id == _LIVE.c.job_id) & (Checkpoint.attempt == _LIVE.c.attempt)
    query = select(Checkpoint.job_id, Checkpoint.attempt, func.max(Checkpoint.created_at)).join(_LIVE, mine)
    rows = session.execute(query.group_by(Checkpoint.job_id, Checkpoint.attempt))
    return {(job_id, attempt): saved_at for job_id, attempt, saved_at in rows}
