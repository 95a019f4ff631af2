"""The audit: who did what."""

from typing import Annotated

from fastapi import APIRouter, Query

from api.access import Admin
from api.audit import AuditEvent, AuditQuery
from api.pages import Page, read_page
from api.session import reading
from jobs.store import audit

router = APIRouter(prefix="/audit", tags=["access"])


@router.get("", summary="List what was done, and by whom")
def list_audit_events(query: Annotated[AuditQuery, Query()], _: Admin) -> Page[AuditEvent]:
    """Return one page of the audit, the newest first: all that was changed, and what a role did not allow."""
    found = audit.select_events(
        actor=query.actor, action=query.action, subject=query.subject, begin=query.begin, end=query.end
    )
    with reading() as session:
        return read_page(session, found, query, AuditEvent)
