"""The gate: every request passes it before anything is read of its body, and leaves it with a principal or an error."""

import re

from fastapi.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from api import errors, loopback
from api.last_use import LastUse
from api.session import reading
from jobs.access import LOCAL, Access, Principal
from jobs.database import AWAY
from jobs.store import tokens

OPEN = frozenset({"/healthz", "/readyz", "/openapi.json", "/docs"})
"""What a load balancer asks, and what is the same for every installation; nothing else answers without a token."""
_BEARER = re.compile(rf"(?i:bearer) +({tokens.SHAPE.pattern})")


class Gate:
    """Middleware that refuses whoever may not use the service at all; what each may do there, `api.access` says."""

    def __init__(self, app: ASGIApp, *, access: Access) -> None:
        self._app = app
        self._access = access
        self._last_use = LastUse()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self._access is Access.LOOPBACK:
            found: Principal | Response | None = loopback.refusal(scope) or LOCAL
        elif scope["path"].removeprefix(scope.get("root_path", "")) in OPEN:
            found = None
        else:
            found = await self._principal(scope)
        if isinstance(found, Response):
            await _pass_over_body(receive)
            await found(scope, receive, send)
            return
        Request(scope).state.principal = found
        await self._app(scope, receive, send)

    async def _principal(self, scope: Scope) -> Principal | Response:
        given = Headers(scope=scope).getlist("authorization")
        if not given:
            return errors.unauthenticated("no token; send Authorization: Bearer rz_…")
        if len(given) > 1:
            return errors.unauthenticated("more than one Authorization header")
        # Of another shape it is none of ours: nothing is asked of the database for it.
        if (bearer := _BEARER.fullmatch(given[0])) is None:
            return errors.unauthenticated("not a token of this service; send Authorization: Bearer rz_…")
        try:
            principal = await run_in_threadpool(_find, bearer[1])
        except AWAY as error:
            return await errors.database_silent(Request(scope), error)
        if principal is None:
            return errors.unauthenticated("the token is unknown, expired or revoked, or its user disabled")
        assert principal.token_id is not None, "it was found by a token"
        self._last_use.note(principal.token_id)
        return principal


def _find(token: str) -> Principal | None:
    with reading() as session:
        return tokens.principal_of(session, token)


async def _pass_over_body(receive: Receive) -> None:
    """Read a body of the size that is allowed, and keep nothing of it.

    A connection that is closed on data not read yet is reset, and its client may never see the answer.
    """
    left = errors.MAX_BODY_BYTES
    while left >= 0:
        message = await receive()
        left -= len(message.get("body", b""))
        if not message.get("more_body", False):
            return
