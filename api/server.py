"""The web server: uvicorn's, with what it takes to end streams: when it stops, and when a connection is dead."""

import asyncio
import gc
import socket
from collections.abc import Callable
from typing import Any

import structlog
import uvicorn
from fastapi import FastAPI, Request
from uvicorn.protocols.http.h11_impl import H11Protocol

from api.feed.reader import reader_of

TAKEN_WITHIN_S = 60
"""For how long, in seconds, a client's machine may leave unanswered what it is sent on a stream. By default Linux waits
a quarter of an hour for one that has lost its power or its network, and for ever for one that does not read."""

log = structlog.get_logger()


class Protocol(H11Protocol):
    """HTTP on one connection, whose requests can reach its transport."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as h11's own does
        """Hand the transport on to the requests, which ASGI has no word for."""
        super().connection_made(transport)
        self.app_state = self.app_state | {"transport": transport}


class Server(uvicorn.Server):
    """Serves one application, and ends its streams before it waits for its connections."""

    def __init__(self, app: FastAPI, **options: Any) -> None:
        super().__init__(uvicorn.Config(app, http=Protocol, **options))
        self._app = app

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve, with all that was made until now out of the collector's sight.

        It stays to the end, and to look through it takes a tenth of a second, which is some request's to wait.
        """
        await super().startup(sockets)
        listeners = [listener for server in getattr(self, "servers", ()) for listener in server.sockets]
        log.info("listening", at=[_named(listener.getsockname()) for listener in listeners])
        gc.collect()
        gc.freeze()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams, then all else as usual."""
        reader_of(self._app).close()
        await super().shutdown(sockets)


def _named(address: Any) -> str:
    """The address of a listener, of IP or in the file system, as it is written."""
    return f"{address[0]} port {address[1]}" if isinstance(address, tuple) else str(address)


def cut_of(request: Request) -> Callable[[], None]:
    """Return what breaks off the connection of a request that is answered by a stream, and have it broken off where the
    other side is gone without a word.

    Under another server than ours it is left to that one.
    """
    transport = getattr(request.state, "transport", None)
    if not isinstance(transport, asyncio.Transport):
        return _leave_it
    connection = transport.get_extra_info("socket")
    if hasattr(socket, "TCP_USER_TIMEOUT") and connection.family != getattr(socket, "AF_UNIX", None):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, TAKEN_WITHIN_S * 1000)
    return transport.abort


def _leave_it() -> None:
    return None
