"""Many streams at once whose clients vanish: they leave no thread, session, descriptor or memory behind."""

import re
import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from api.feed import reader
from jobs.database import now
from jobs.store import feed
from tests.api_server import ApiServer
from tests.waiting import wait_until

CLIENTS = 200
POOLED = 5 * 3
"""Descriptors that the pool may still add to: of five connections that it keeps, each with three files on SQLite."""
THREADS = reader.CATCHING_UP + 1
"""Threads that all streams together have, the reader's own among them."""
RST = struct.pack("ii", 1, 0)
"""SO_LINGER of a socket whose close sends a reset."""


@pytest.fixture(scope="module")
def api(api_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """With places for fewer streams than come and go."""
    with ApiServer(api_database, tmp_path_factory.mktemp("api"), streams=2 * CLIENTS) as server:
        yield server


def connect(api: ApiServer) -> socket.socket:
    """A client that has asked for everything and has been answered."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(30)
    client.connect(("127.0.0.1", int(api.url.rpartition(":")[2])))
    client.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    received = b""
    while b"event: hello" not in received:
        received += (some := client.recv(4096))
        assert some, received
    return client


def descriptors(api: ApiServer) -> int:
    return len(list(Path(f"/proc/{api.pid}/fd").iterdir()))


def figure(api: ApiServer, name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+)", Path(f"/proc/{api.pid}/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1])


def sessions(api: ApiServer) -> int:
    """Sessions of the database that are in a transaction."""
    if api.database.is_sqlite:
        return 0
    busy = text("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in %'")
    with api.database.session_scope(read_only=True) as session:
        return int(session.scalar(busy) or 0)


def none_waits_in_a_transaction(api: ApiServer) -> None:
    # The reader is in one for a moment at each look. Whatever waited in one would do so for ten seconds.
    wait_until(lambda: sessions(api) == 0, timeout_s=5, what="no session to be in a transaction")


def tell(api: ApiServer, *, megabytes: int) -> None:
    """More than the buffers of a connection hold."""
    for _ in range(megabytes):
        with api.database.session_scope() as session:
            for _ in range(20):
                feed.tell_host(session, "alpha", "x" * 50_000, at=now(session))


def vanish(api: ApiServer, how: Callable[[list[socket.socket]], None], *, most: int) -> None:
    """Have all clients go, each with much that it has not read; return once their descriptors are let go of."""
    clients = [connect(api) for _ in range(CLIENTS)]
    assert descriptors(api) >= CLIENTS
    none_waits_in_a_transaction(api)
    tell(api, megabytes=8)
    how(clients)
    for client in clients:
        client.close()
    wait_until(lambda: descriptors(api) <= most, timeout_s=60, what=lambda: f"{most} of {descriptors(api)} to be left")


def reset(clients: list[socket.socket]) -> None:
    for client in clients:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RST)


def close_in_order(clients: list[socket.socket]) -> None:
    for client in clients:
        client.shutdown(socket.SHUT_RDWR)


def test_two_hundred_streams_that_vanish_leave_nothing_behind(api: ApiServer) -> None:
    most, threads = descriptors(api) + POOLED, figure(api, "Threads") + THREADS
    connect(api).close()
    vanish(api, reset, most=most)  # what the process takes for the first so many, it keeps for the next
    memory = figure(api, "VmRSS")

    for how in (close_in_order, reset):
        vanish(api, how, most=most)

    assert figure(api, "Threads") <= threads
    assert figure(api, "VmRSS") <= memory + 32 * 1024, "kilobytes"
    none_waits_in_a_transaction(api)
    assert api.http.get("/healthz").is_success
