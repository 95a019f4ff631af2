"""The one place that changes a job's state, and the events that tell of it."""

from datetime import datetime
from typing import Any

from sqlalchemy import CursorResult, update
from sqlalchemy.orm import Session
from sqlalchemy.sql.dml import Update

from jobs.errors import IllegalTransitionError
from jobs.feed import Topic
from jobs.states import TRANSITIONS, State
from jobs.store import feed, outbox
from jobs.tables import Job, JobEvent

OF_THE_LINE = ("reason", "line_key", "predicted_start", "waits_for", "reservation")
"""The columns of what the planner says of a queued job."""


def move(
    session: Session,
    job: Job,
    to: State,
    *,
    at: datetime,
    detail: dict[str, Any] | None = None,
    **columns: Any,
) -> bool:
    """Move a job from the state and attempt that `job` was read with; False, and nothing written, if it moved on since.

    Raises IllegalTransitionError for a change outside TRANSITIONS.
    """
    source = State(job.state)
    if to not in TRANSITIONS[source]:
        raise IllegalTransitionError(f"job {job.id}: {source} -> {to} is not a legal change of state")
    # What was last said of its place in the line is no longer so, wherever it goes.
    columns = dict.fromkeys(OF_THE_LINE) | columns
    if to.is_terminal:
        columns["finished_at"] = at
    if to is State.QUEUED:
        columns["queued_at"] = at
    statement = (
        update(Job)
        .where(Job.id == job.id, Job.state == source, Job.attempt == job.attempt)
        .values(state=to, updated_at=at, **columns)
    )
    if not changed(session, statement):
        return False
    session.refresh(job)
    record(session, job.id, "state", attempt=job.attempt, at=at, from_state=source, to_state=to, detail=detail or {})
    outbox.tell_of_state(session, job, from_state=source, at=at)
    return True


def record(
    session: Session,
    job_id: int,
    kind: str,
    *,
    attempt: int,
    at: datetime,
    detail: dict[str, Any],
    from_state: State | None = None,
    to_state: State | None = None,
) -> None:
    """Write an event of a job."""
    event = JobEvent(
        job_id=job_id, attempt=attempt, at=at, kind=kind, from_state=from_state, to_state=to_state, detail=detail
    )
    session.add(event)
    session.flush()
    feed.tell(session, Topic.JOBS, {"event": event.id}, job_id=job_id, at=at)


def changed(session: Session, statement: Update) -> int:
    """Execute an UPDATE and return how many rows it changed."""
    result = session.execute(statement, execution_options={"synchronize_session": False})
    assert isinstance(result, CursorResult)
    return result.rowcount
