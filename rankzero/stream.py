"""The stream of events as a client follows it, over as many connections as it takes."""

import json
import socket
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import httpx2

from rankzero.connection import Connection, no_service
from rankzero.errors import RefusedError, UnreachableError
from rankzero.news import Hello, News, news_of
from rankzero.patience import Patience

SILENCE_S = 45.0
"""After how long without a byte a connection counts as broken off: the service sends a sign of life every 15 s."""
LARGEST_EVENT_BYTES = 64 * 1024 * 1024
"""An event holds all that one transaction wrote; httpx2's own limit is less than the output that may be."""


class Stream:
    """What happens, as an iterable: nothing is missed and nothing comes twice, whatever becomes of the connection.

    An outage of the service shorter than the connection's patience is waited out, a longer one raises UnreachableError.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        jobs: Collection[int] = (),
        topics: Collection[str] = (),
        after: str | None = None,
        ends_at: float | None = None,
    ) -> None:
        """`jobs` and `topics` are all where none are named; `after` is the id of the last news that is known; `ends_at`
        is a time of `time.monotonic` at which the iteration ends."""
        self._connection = connection
        self._query = {"jobs": ",".join(map(str, jobs)) or None, "topics": ",".join(topics) or None}
        self._after = after
        self._ends_at = float("inf") if ends_at is None else ends_at

    def __iter__(self) -> Iterator[News]:
        """Yield Hello first, and then what happens."""
        place = self._after
        is_greeted = False
        patience = Patience(self._connection.patience_s)
        while True:
            is_answered = False
            opened_at = time.monotonic()
            why = "the service has ended it"
            try:
                with self._events(place) as events:
                    for event in events:
                        is_answered = True
                        place = event.id or place
                        if event.event == "message":  # a sign of life, with the place up to which nothing came
                            continue
                        news = news_of(event.event, self._content(event.data), place=place or "")
                        if news is None or (is_greeted and isinstance(news, Hello)):
                            continue
                        is_greeted = True
                        yield news
            except httpx2.TransportError as error:
                why = str(error)
            except UnreachableError:
                if not self._connection.was_there or self._ends_at - opened_at > self._connection.patience_s:
                    raise
                time.sleep(max(0.0, self._ends_at - time.monotonic()))  # there was no time for all of one's patience
            if time.monotonic() >= self._ends_at:
                return
            if is_answered:
                patience.answered()
            if not patience.pause(until=self._ends_at):
                raise UnreachableError(f"the stream of events from {self._connection.url} breaks off: {why}")

    def _content(self, data: str) -> dict[str, Any]:
        try:
            content = json.loads(data)
        except (ValueError, RecursionError):
            content = None
        if not isinstance(content, dict):
            raise RefusedError(f"what answers at {self._connection.url} is no RankZero service", status=200)
        return content

    @contextmanager
    def _events(self, place: str | None) -> Iterator[Iterator[httpx2.ServerSentEvent]]:
        headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
        headers |= {} if place is None else {"Last-Event-ID": place}
        left_s = max(0.01, self._ends_at - time.monotonic())
        request = self._connection.build("/events", self._query, headers=headers, silence_s=min(SILENCE_S, left_s))
        with self._connection.open(request, patience_s=min(self._connection.patience_s, left_s)) as response:
            if not response.headers.get("Content-Type", "").startswith("text/event-stream"):
                raise no_service(self._connection.url, response)
            with _cut_off(response, self._ends_at):
                yield iter(httpx2.EventSource(response, max_event_size=LARGEST_EVENT_BYTES))


@contextmanager
def _cut_off(response: httpx2.Response, ends_at: float) -> Iterator[None]:
    """Break the connection off at a time, if the block is not over by then: a read may wait for longer than that."""
    if ends_at == float("inf"):
        yield
        return
    connected = response.extensions["network_stream"].get_extra_info("socket")

    def cut() -> None:
        with suppress(OSError):  # it is closed already
            # The plain one, also below TLS, whose own would say farewell first, in the middle of another thread's read.
            socket.socket.shutdown(connected, socket.SHUT_RDWR)

    timer = threading.Timer(max(0.0, ends_at - time.monotonic()), cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
