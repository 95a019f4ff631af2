"""A receiver of RankZero's webhooks: it verifies each message, and has a pipeline wait for the one it needs."""

import queue
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from standardwebhooks import Webhook, WebhookVerificationError

Message = dict[str, Any]


class Receiver:
    """Serves `url` while it is open; until it has its `key` it takes no message for true."""

    def __init__(self, host: str, port: int) -> None:
        """Listen on a port of this machine; 0 takes a free one."""
        self.key: str | None = None
        self._messages: queue.Queue[Message] = queue.Queue()
        self._seen: set[str] = set()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                # Answer soon and work afterwards: who waits for longer than 15 s takes the message for lost.
                self.send_response(204 if receiver.take(body, dict(self.headers)) else 400)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing: the pipeline does."""

        self._server = ThreadingHTTPServer((host, port), Handler)
        self.url = f"http://{host}:{self._server.server_port}/"

    def take(self, body: bytes, headers: dict[str, str]) -> bool:
        """Take a message, and return whether its signature is right."""
        if self.key is None:
            return False
        try:
            message = Webhook(self.key).verify(body, headers)
        except WebhookVerificationError:
            return False
        message_id = next(value for name, value in headers.items() if name.lower() == "webhook-id")
        if message_id not in self._seen:  # a message may come twice, with the same id
            self._seen.add(message_id)
            self._messages.put(message)
        return True

    def wait_for(self, job_id: int, *, timeout_s: float) -> Message:
        """Return the next message about a job. Raises queue.Empty where none comes in time."""
        while True:
            message = self._messages.get(timeout=timeout_s)
            if message["data"].get("job", {}).get("id") == job_id:
                return message

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
