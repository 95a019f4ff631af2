"""What a role did not allow, noted in the audit: in a transaction of its own, since that of the request is undone."""

import structlog
from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from sqlalchemy.exc import SQLAlchemyError

from api.rate_limits import Buckets
from jobs.access import Principal
from jobs.database import get_database
from jobs.store import audit

AT_ONCE = 20
"""Refusals of one token that are noted at once, then one a second: whoever may only look must not fill the database."""

log = structlog.get_logger()
_noted = Buckets(per_s=1, burst=AT_ONCE)


async def note(request: Request, reason: str) -> None:
    """Note that the principal of a request was refused it. Where that cannot be written, the refusal stands."""
    principal = request.state.principal
    assert isinstance(principal, Principal), "nobody is refused by role before the gate"
    action = request.scope["route"].name
    if _noted.take(principal.token_id):
        log.warning("refusal_not_noted", actor=principal.user, action=action, error="too many of them")
        return
    await run_in_threadpool(_write, principal, action, request.url.path[1:], reason)


def _write(principal: Principal, action: str, path: str, reason: str) -> None:
    try:
        with get_database().session_scope() as session:
            audit.record(session, principal, action, path, refused=reason)
    except SQLAlchemyError as error:
        log.warning("refusal_not_noted", actor=principal.user, action=action, error=str(error).splitlines()[0])
