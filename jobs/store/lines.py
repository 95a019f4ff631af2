"""The line: what the planner last said of each job that waits in it."""

from sqlalchemy import update
from sqlalchemy.orm import Session

from jobs.planner.view import Wait
from jobs.states import State
from jobs.store.transitions import changed
from jobs.tables import Job


def note(session: Session, decision: Wait) -> None:
    """Write what a queued job waits for, if that is news."""
    changed(
        session,
        update(Job)
        .where(Job.id == decision.job_id, Job.state == State.QUEUED, Job.reason.is_distinct_from(decision.reason))
        .values(reason=decision.reason, line_key=decision.line_key),
    )


def note_unreadable(session: Session, job_id: int, error: ValueError) -> None:
    """Write that a queued job's spec is of another version, if that is news."""
    reason = f"its spec cannot be read by this version: {error}"
    unchanged = Job.reason.is_distinct_from(reason)
    changed(session, update(Job).where(Job.id == job_id, Job.state == State.QUEUED, unchanged).values(reason=reason))
