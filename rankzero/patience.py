"""Patience: when, and for how long, something is tried again that got no answer."""

import random
import time

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 3.0


class Patience:
    """Pauses between tries: each about twice as long as the one before, by lot, since many may try again at once."""

    def __init__(self, limit_s: float) -> None:
        """No pause ends later than `limit_s` seconds from now, or from the last answer."""
        self._limit_s = limit_s
        self.answered()

    def answered(self) -> None:
        """Begin anew: there was an answer."""
        self._ends_at = time.monotonic() + self._limit_s
        self._tries = 0

    def pause(self, asked_s: float = 0.0, *, until: float = float("inf")) -> bool:
        """Wait before the next try, for `asked_s` seconds at least; return False, at once, where that is too long.

        The wait ends at `until` at the latest, a time of `time.monotonic`.
        """
        longest_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2**self._tries)
        pause_s = asked_s + random.uniform(longest_s / 2, longest_s)
        moment = time.monotonic()
        if moment + pause_s > self._ends_at:
            return False
        self._tries += 1
        time.sleep(max(0.0, min(pause_s, until - moment)))
        return True
