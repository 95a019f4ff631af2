"""A receiver of webhooks, as a server in a thread of the test: it keeps what arrives and answers as it is told."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


@dataclass(frozen=True)
class Received:
    """One request."""

    path: str
    headers: dict[str, str]
    """By their names in lower case."""
    body: bytes


@dataclass(frozen=True)
class Answer:
    """What is answered to a request."""

    status: int = 204
    location: str | None = None


class Receiver:
    """Answers 204 to every POST until `answer` says otherwise; `answer` may block, which holds up nobody else."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.requests: list[Received] = []
        self.answer: Callable[[Received], Answer] = lambda _: Answer()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                request = Received(self.path, {name.lower(): text for name, text in self.headers.items()}, body)
                receiver.requests.append(request)
                answer = receiver.answer(request)
                self.send_response(answer.status)
                if answer.location is not None:
                    self.send_header("Location", answer.location)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer((host, 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def port(self) -> int:
        return self._server.server_port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
