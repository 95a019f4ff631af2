"""The audit: what principals did and were refused, written in the transaction of what they did."""

from datetime import datetime, timedelta
from typing import Any

import structlog
from sqlalchemy import Select, delete, or_, select
from sqlalchemy.orm import Session

from jobs.access import Principal
from jobs.column_types import storable
from jobs.database import now
from jobs.errors import ForbiddenError
from jobs.store import jobs
from jobs.tables import AuditEvent

KEPT = timedelta(days=365)
"""For how long an event is kept."""
_WRITTEN = "audited"


def record(session: Session, by: Principal, action: str, subject: str | None, /, **detail: Any) -> None:
    """Note that `by` does `action`, an operation of the schema, to `subject`, a path such as `hosts/alpha`.

    The request's id is that of the log's context, so that the lines of the log about it are found.
    """
    session.add(
        AuditEvent(
            at=now(session),
            actor=by.user,
            token_id=by.token_id,
            action=action,
            subject=None if subject is None else storable(subject)[:255],
            detail=detail,
            request_id=structlog.contextvars.get_contextvars().get("request_id"),
        )
    )
    session.info[_WRITTEN] = True


def act_on_job(session: Session, by: Principal, action: str, job_id: int, /, **detail: Any) -> None:
    """Note that `by` acts on a job. Raises ForbiddenError for one of somebody else, and NotFoundError."""
    owner = jobs.get(session, job_id).user
    if not by.owns(owner):
        whose = "has no owner" if owner is None else f"is {owner}'s"
        raise ForbiddenError(f"job {job_id} {whose}; besides its owner only the role admin may do this")
    record(session, by, action, f"jobs/{job_id}", **detail)


def select_events(
    *,
    actor: str | None = None,
    action: str | None = None,
    subject: str | None = None,
    begin: datetime | None = None,
    end: datetime | None = None,
) -> Select[AuditEvent]:
    """Return the query for events, the newest first; `subject` also finds what was done to parts of it."""
    query = select(AuditEvent).order_by(AuditEvent.id.desc())
    if actor is not None:
        query = query.where(AuditEvent.actor == actor)
    if action is not None:
        query = query.where(AuditEvent.action == action)
    if subject is not None:
        part = AuditEvent.subject.startswith(f"{subject}/", autoescape=True)
        query = query.where(or_(AuditEvent.subject == subject, part))
    if begin is not None:
        query = query.where(AuditEvent.at >= begin)
    if end is not None:
        query = query.where(AuditEvent.at < end)
    return query


def forget(session: Session, at: datetime) -> None:
    """Remove the events that are older than what is kept at the database's time `at`."""
    session.execute(delete(AuditEvent).where(AuditEvent.at < at - KEPT))


def is_written(session: Session) -> bool:
    """Whether anything has been noted in this session."""
    return bool(session.info.get(_WRITTEN))
