"""A way to a server that the test may cut: a network between a client and its database, with the faults of one."""

import random
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Self

from sqlalchemy import make_url


class Proxy:
    """Passes bytes between its clients and a server, until it is told to lose some of them."""

    def __init__(self, server_url: str, *, address: str = "127.0.0.1") -> None:
        """Listen at `address` for clients of the server at `server_url`; `url` is the same server through here."""
        server = make_url(server_url)
        assert server.host is not None
        assert server.port is not None
        self._server = (server.host, server.port)
        self._listener = socket.create_server((address, 0))
        port: int = self._listener.getsockname()[1]
        self.url = server.set(host=address, port=port).render_as_string(hide_password=False)
        self._lock = threading.Lock()
        self._connections: set[tuple[socket.socket, socket.socket]] = set()
        self._is_open = threading.Event()
        self._is_open.set()
        self._refuses = False
        self._lost_mark = b""
        self._lost_share = 0.0
        self._draws = random.Random(0)
        self.lost_answers = 0
        """How many commits, or other requests, have been done whose answer never arrived."""
        threading.Thread(target=self._accept, name="proxy", daemon=True).start()

    def lose_answers_to_commits(self, *, share: float) -> None:
        """From now on break the connection of this share of COMMITs after they are done, before they say so.

        By lot, not by counting: two clients that take turns in a fixed rhythm would have the same one lose every time.
        """
        self.lose_answers_to(b"COMMIT", share=share)

    def lose_answers_to(self, mark: bytes, *, share: float) -> None:
        """The same for requests that have these bytes in them."""
        self._lost_mark = mark
        self._lost_share = share

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Hold back every byte, as a network that lost its route does: clients get neither answer nor error."""
        self._is_open.clear()
        try:
            yield
        finally:
            self._is_open.set()

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Break every connection, and each new one at once, as a machine whose server is down does."""
        self._refuses = True
        self._break_all()
        try:
            yield
        finally:
            self._refuses = False

    def close(self) -> None:
        self._listener.close()
        self._break_all()
        self._is_open.set()

    def _break_all(self) -> None:
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            _break(connection)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                if self._refuses:
                    client.close()
                    continue
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(self._server, timeout=5)
        except OSError:
            client.close()
            return
        server.settimeout(None)
        connection = (client, server)
        with self._lock:
            self._connections.add(connection)
        loses_answer = threading.Event()
        back = threading.Thread(target=self._pass_answers, args=(connection, loses_answer), daemon=True)
        back.start()
        with suppress(OSError):
            while request := client.recv(65536):
                if self._lost_mark and self._lost_mark in request and self._is_to_be_lost():
                    loses_answer.set()
                self._is_open.wait()
                server.sendall(request)
        _break(connection)
        back.join()
        with self._lock:
            self._connections.discard(connection)
        client.close()
        server.close()

    def _pass_answers(self, connection: tuple[socket.socket, socket.socket], loses_answer: threading.Event) -> None:
        client, server = connection
        with suppress(OSError):
            while answer := server.recv(65536):
                if loses_answer.is_set():  # the server has answered, so the commit is done
                    self.lost_answers += 1
                    break
                self._is_open.wait()
                client.sendall(answer)
        _break(connection)

    def _is_to_be_lost(self) -> bool:
        with self._lock:
            return self._draws.random() < self._lost_share


def _break(connection: tuple[socket.socket, socket.socket]) -> None:
    for end in connection:
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
