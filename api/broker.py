"""Whether the broker answers, for all who ask: anybody at all may, so it is asked once in a while, by one of them."""

import threading
import time

from jobs import wakeups

SEEN_S = 1.0
"""For how long an answer of the broker, or its silence, counts, in seconds."""


class BrokerView:
    """What was last seen of the broker. A silent one is waited for by one thread, and not by all that there are."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: bool | None = None
        self._counts_until = 0.0

    def answers(self) -> bool:
        """Return whether the broker takes messages, as of about SEEN_S ago at most."""
        seen = self._answers
        if not self._lock.acquire(blocking=seen is None):
            assert seen is not None, "else it would have waited"
            return seen  # somebody is looking
        try:
            if self._answers is None or time.monotonic() >= self._counts_until:
                self._answers = wakeups.broker_answers()
                self._counts_until = time.monotonic() + SEEN_S
            return self._answers
        finally:
            self._lock.release()
