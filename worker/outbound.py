"""Sending to URLs that users named: one request each, to no address that the operator does not allow.

The address is checked where it is connected to, so nothing that a name resolves to between a check and a connection,
no other spelling of an address and no redirect (none is followed) leads anywhere else. No proxy is used, and no
connection twice: each has been checked with the settings of this process.
"""

import socket
import ssl
from collections.abc import Iterable
from contextlib import suppress
from ipaddress import ip_address
from typing import Any

import httpcore2
import httpx2

from jobs.addresses import Allowed, refused
from worker.clock import clock

CONNECT_S = 5
"""Seconds that one address of several gets to answer."""
MOST_READ_BYTES = 64 * 1024
"""Of an answer's body, which nobody looks at: it is read so that its sender sees the request end in order."""


class NotSentError(Exception):
    """Nothing was answered, or the address is none that is sent to; says why."""


class Outbound:
    """Sends requests; threads share it."""

    def __init__(self, allowed: Allowed, *, timeout_s: float) -> None:
        """`timeout_s` is for a request as a whole, from the connection to the last byte that is read."""
        self._allowed = allowed
        self._timeout_s = timeout_s
        # Made once, since it reads all certificate authorities; with those of SSL_CERT_FILE, where that is set.
        self._tls = httpx2.create_ssl_context()

    def post(self, url: str, content: bytes, headers: dict[str, str]) -> int:
        """Send a POST, and return the status of its answer. Raises NotSentError."""
        try:
            parsed = httpx2.URL(url)
        except httpx2.InvalidURL as error:
            raise NotSentError(f"{url} is no URL: {error}") from error
        target = httpcore2.URL(
            scheme=parsed.raw_scheme, host=parsed.raw_host, port=parsed.port, target=parsed.raw_path or b"/"
        )
        sent = [(b"Host", parsed.netloc), *((name.encode(), value.encode()) for name, value in headers.items())]
        backend = _Backend(self._allowed, until=clock() + self._timeout_s)
        try:
            with (
                httpcore2.ConnectionPool(ssl_context=self._tls, network_backend=backend) as pool,
                pool.stream("POST", target, headers=sent, content=content) as response,
            ):
                _read(response)
                return response.status
        except httpcore2.TimeoutException as error:
            raise NotSentError(f"no answer within {self._timeout_s:g} s") from error
        except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.UnsupportedProtocol) as error:
            raise NotSentError(str(error) or type(error).__name__) from error


def _read(response: httpcore2.Response) -> None:
    """Read the begin of a body. The status, which is known by then, counts whatever becomes of the rest."""
    received = 0
    with suppress(httpcore2.TimeoutException, httpcore2.NetworkError, httpcore2.ProtocolError):
        for part in response.iter_stream():
            received += len(part)
            if received >= MOST_READ_BYTES:
                return


class _Backend(httpcore2.NetworkBackend):
    """Connects to checked addresses only, for one request that must be over at `until` on `clock`."""

    def __init__(self, allowed: Allowed, *, until: float) -> None:
        self._allowed = allowed
        self._until = until
        self._sockets = httpcore2.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002  # the request as a whole has one
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        """Resolve the host once, and connect to one of the addresses found, unless one of them is refused."""
        addresses = _resolve(host, port)
        reason = refused(host, [ip_address(address) for address in addresses], self._allowed)
        if reason is not None:
            raise httpcore2.ConnectError(reason)
        failure: Exception | None = None
        for address in addresses:
            try:
                stream = self._sockets.connect_tcp(
                    address,  # a number, for which no name server is asked again
                    port,
                    timeout=min(CONNECT_S, _left(self._until)),
                    local_address=local_address,
                    socket_options=socket_options,
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = failure or error
                continue
            return _Stream(stream, self._until)
        raise failure or httpcore2.ConnectError(f"{host} has no address")


class _Stream(httpcore2.NetworkStream):
    """A connection each of whose steps may take what is left of the request's time, and no more."""

    def __init__(self, stream: httpcore2.NetworkStream, until: float) -> None:
        self._stream = stream
        self._until = until

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002  # the time left is what counts
        return self._stream.read(max_bytes, timeout=_left(self._until))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002  # the time left is what counts
        self._stream.write(buffer, timeout=_left(self._until))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002  # the time left is what counts
    ) -> httpcore2.NetworkStream:
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, _left(self._until)), self._until)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _resolve(host: str, port: int) -> list[str]:
    """Return the addresses of a host, as numbers. A name server that is silent takes its own time."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise httpcore2.ConnectError(f"{host} has no address: {error}") from error
    return list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))


def _left(until: float) -> float:
    left = until - clock()
    if left <= 0:
        raise httpcore2.ReadTimeout
    return left
