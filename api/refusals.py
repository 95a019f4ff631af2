"""What a role did not allow, noted in the audit: in a transaction of its own, since that of the request is undone."""

import structlog
from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from sqlalchemy.exc import SQLAlchemyError

from jobs.access import Principal
from jobs.database import get_database
from jobs.store import audit

log = structlog.get_logger()


async def note(request: Request, reason: str) -> None:
    """Note that the principal of a request was refused it. Where that cannot be written, the refusal stands."""
    principal = request.state.principal
    assert isinstance(principal, Principal), "nobody is refused by role before the gate"
    await run_in_threadpool(_write, principal, request.scope["route"].name, request.url.path[1:], reason)


def _write(principal: Principal, action: str, path: str, reason: str) -> None:
    try:
        with get_database().session_scope() as session:
            audit.record(session, principal, action, path, refused=reason)
    except SQLAlchemyError as error:
        log.warning("refusal_not_noted", actor=principal.user, action=action, error=str(error).splitlines()[0])
