"""Which methods a path takes: HEAD wherever GET, and all of them named to whoever tries another."""

from fastapi import Request
from fastapi.routing import iter_route_contexts
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.access import Viewer

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


class NoSuchMethod(Exception):
    """The path does not take the method."""


class HeadAsGet:
    """ASGI middleware: HEAD is answered as GET would be, without the body (RFC 9110, section 9.3.2)."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self.app(scope, receive, send)
            return
        answered = False

        async def without_body(message: Message) -> None:
            nonlocal answered
            if message["type"] == "http.response.start":
                await send(message)
                await send({"type": "http.response.body"})
                answered = True

        async def until_answered() -> Message:
            # A stream ends here, as it does for a client that goes.
            return {"type": "http.disconnect"} if answered else await receive()

        got = dict(scope, method="GET")  # a copy: the server goes by its own to send no body
        try:
            await self.app(got, until_answered, without_body)
        finally:
            if "route" in got:
                scope["route"] = got["route"]


def no_such_method(_: Viewer) -> None:
    """Take no method: of a path that would otherwise be taken for another one's, with a word of it for a parameter."""
    raise NoSuchMethod


def allowed(request: Request) -> str:
    """Return the methods that the path of a request takes, as the header `Allow` lists them (RFC 9110, 10.2.1).

    The framework names those of the first route that has this path, and there are several.
    """
    scope = {"type": "http", "path": request.scope["path"], "root_path": request.scope.get("root_path", "")}
    found = [method for method in METHODS if _is_taken(request, {**scope, "method": method})]
    return ", ".join([*found, "HEAD"] if "GET" in found else found)


def _is_taken(request: Request, scope: Scope) -> bool:
    matching = (each for each in iter_route_contexts(request.app.routes) if each.matches(scope)[0] is Match.FULL)
    first = next(matching, None)
    return first is not None and first.endpoint is not no_such_method
