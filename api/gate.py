"""The gate: every request passes it before anything is made of its body, and leaves it with a principal or an error."""

import re
from ipaddress import IPv6Address, ip_address

from fastapi.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from api import errors, loopback
from api.last_use import LastUse
from api.rate_limits import Buckets, Known
from api.session import reading
from jobs.access import LOCAL, Access, Principal
from jobs.database import AWAY
from jobs.settings import get_settings
from jobs.store import tokens

OPEN = frozenset({"/healthz", "/readyz", "/openapi.json", "/docs", "/", "/ui"})
"""What a load balancer asks, and what is the same for every installation; nothing else answers without a token."""
OPEN_BELOW = ("/docs/", "/ui/")
"""The files of that page, and of the dashboard, which asks for a token itself before it shows anything."""
FAILURES = 10
"""Tokens that do not count which a peer may send at once; then one a minute."""
_BEARER = re.compile(rf"(?i:bearer) +({tokens.SHAPE.pattern})")


class Gate:
    """Middleware that refuses whoever may not use the service at all; what each may do there, `api.access` says."""

    def __init__(self, app: ASGIApp, *, access: Access) -> None:
        self._app = app
        self._access = access
        self._last_use = LastUse()
        limit = get_settings().rate_limit
        self._rates = Buckets(per_s=limit, burst=max(1, 2 * limit)) if limit else None
        self._failures = Buckets(per_s=1 / 60, burst=FAILURES)
        self._known = Known()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self._access is Access.LOOPBACK:
            found: Principal | Response | None = loopback.refusal(scope) or LOCAL
        elif is_open(scope["path"].removeprefix(scope.get("root_path", ""))):
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
        digest = tokens.digest(bearer[1])
        peer = _network(scope)
        # A token that has counted is looked up all the same: behind a proxy all share one peer with whoever fails.
        if digest not in self._known and (wait_s := self._failures.wait_s(peer)):
            return errors.too_many("too many tokens that do not count came from this address", wait_s)
        try:
            principal = await run_in_threadpool(_find, bearer[1])
        except AWAY as error:
            return await errors.database_silent(Request(scope), error)
        if principal is None:
            self._known.discard(digest)
            self._failures.take(peer)
            return errors.unauthenticated("the token is unknown, expired or revoked, or its user disabled")
        assert principal.token_id is not None, "it was found by a token"
        self._known.add(digest)
        if self._rates is not None and (wait_s := self._rates.take(principal.token_id)):
            return errors.too_many("this token asks more often than RANKZERO_RATE_LIMIT allows", wait_s)
        self._last_use.note(principal.token_id)
        return principal


def is_open(path: str) -> bool:
    """Whether a path answers without a token."""
    return path in OPEN or path.startswith(OPEN_BELOW)


def _find(token: str) -> Principal | None:
    with reading() as session:
        return tokens.principal_of(session, token)


def _network(scope: Scope) -> str:
    """Return what a peer's failures are counted under: its address, or for IPv6 the network that one machine has."""
    peer = scope.get("client")
    try:
        address = ip_address(peer[0]) if peer else None
    except ValueError:
        address = None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is None:
        return address.exploded[:19]
    return str(address)


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
