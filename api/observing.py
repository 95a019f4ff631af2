"""What is seen of each request from outside: its id, its line in the log, and its part in the figures of `/metrics`."""

import re
import time
from uuid import uuid4

import structlog
from opentelemetry import trace
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bind_contextvars, clear_contextvars, get_contextvars

from api import figures

HEADER = "X-Request-ID"
PROBES = ("/healthz", "/readyz", "/metrics")
"""Asked every few seconds by machines: their lines would hide all others."""
_SANE = re.compile(r"[A-Za-z0-9._:+/=-]{1,64}")
"""Ids that callers make up, which stand in our log and in the database: nothing that a line or a column cannot take."""
_JOB = re.compile(r"/jobs/([1-9][0-9]{0,18})(?:/|$)")

log = structlog.get_logger()


def is_probe(scope: Scope) -> bool:
    """Whether a request is one of those that machines make every few seconds."""
    return scope["path"] in PROBES


def request_id() -> str | None:
    """Return the id of the request that is being answered, if one is."""
    found = get_contextvars().get("request_id")
    return found if isinstance(found, str) else None


class Observer:
    """ASGI middleware around all others, so that nothing is answered unseen, not even by a failure of ours."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = time.perf_counter()
        own_id = _bind(scope)
        status: int | None = None

        async def observed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers[HEADER] = own_id
                _bind_job(headers.get("location", ""))
            await send(message)

        try:
            await self.app(scope, receive, observed)
        finally:
            _tell(scope, status, time.perf_counter() - began)


def _bind(scope: Scope) -> str:
    """Make the request's id, and its job's, part of every line of the log until it is answered; return its id."""
    given = Headers(scope=scope).get(HEADER, "")
    own_id = given if _SANE.fullmatch(given) else uuid4().hex
    # Not taken back at the end: the server logs what the application raises after that. Each request has a task, and
    # with it a context, of its own.
    clear_contextvars()
    bind_contextvars(request_id=own_id)
    _bind_job(scope["path"])
    span = trace.get_current_span()
    if span.is_recording():
        span.set_attribute("http.request.header.x-request-id", [own_id])
        bind_contextvars(trace_id=trace.format_trace_id(span.get_span_context().trace_id))
    return own_id


def _bind_job(path: str) -> None:
    found = _JOB.match(path)
    if found is not None:
        bind_contextvars(job_id=int(found[1]))


def _tell(scope: Scope, status: int | None, took_s: float) -> None:
    route = getattr(scope.get("route"), "path_format", None)
    figures.count_request(scope["method"], route, status, took_s)
    tell = log.debug if is_probe(scope) else log.info
    # No query, which may hold what somebody should not have put there, and no header.
    tell(
        "request",
        method=scope["method"],
        path=scope["path"],
        route=route,
        status=status,  # None for a client that went before there was one
        ms=round(took_s * 1000, 1),
    )
