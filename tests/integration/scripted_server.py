"""A server that answers as a test says, for what a real service does only when it is in trouble, or is none of ours."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Scripted:
    """One answer."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | Mapping[str, object] = b""


@dataclass(frozen=True)
class Received:
    """One request."""

    method: str
    path: str
    headers: Mapping[str, str]


class ScriptedServer:
    """Gives its answers one after the other, and the last one from then on."""

    def __init__(self, url: str, answers: list[Scripted]) -> None:
        self.url = url
        self.answers = answers
        self.received: list[Received] = []

    def next(self, request: Received) -> Scripted:
        self.received.append(request)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@contextmanager
def scripted_server(*answers: Scripted) -> Iterator[ScriptedServer]:
    """A server that gives these answers, for as long as the block takes."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            scripted = server.next(Received(self.command, self.path, dict(self.headers)))
            body = scripted.body if isinstance(scripted.body, bytes) else json.dumps(scripted.body).encode()
            self.send_response(scripted.status)
            # Else a connection that is kept would be served after the block, too.
            ends = {"Content-Length": str(len(body)), "Connection": "close"}
            for name, value in (dict(scripted.headers) | ends).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer  # noqa: N815  # as the standard library calls them

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        server = ScriptedServer(f"http://127.0.0.1:{http.server_port}", list(answers))
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()
