"""Rate limits: how often somebody may ask, counted in the memory of this process."""

import time
from collections import OrderedDict
from collections.abc import Hashable

MOST = 10_000
"""Keys that are remembered; of more, those that were heard of longest ago begin anew."""


class Buckets:
    """A token bucket for each key: `burst` at once, and `per_s` in each second after that."""

    def __init__(self, *, per_s: float, burst: float) -> None:
        self._per_s = per_s
        self._burst = burst
        self._levels: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def wait_s(self, key: Hashable) -> float:
        """Return for how long a key has to wait now, in seconds; 0 where it need not."""
        return max(0.0, 1 - self._level(key, time.monotonic())) / self._per_s

    def take(self, key: Hashable) -> float:
        """Count one request of a key, unless it has to wait; return for how long, in seconds."""
        moment = time.monotonic()
        level = self._level(key, moment)
        if level < 1:
            return (1 - level) / self._per_s
        self._levels[key] = level - 1, moment
        self._levels.move_to_end(key)
        if len(self._levels) > MOST:
            self._levels.popitem(last=False)
        return 0.0

    def _level(self, key: Hashable, moment: float) -> float:
        level, at = self._levels.get(key, (self._burst, moment))
        return min(self._burst, level + (moment - at) * self._per_s)


class Known:
    """Keys that have proven good, the latest MOST of them."""

    def __init__(self) -> None:
        self._keys: OrderedDict[Hashable, None] = OrderedDict()

    def __contains__(self, key: Hashable) -> bool:
        return key in self._keys

    def add(self, key: Hashable) -> None:
        self._keys[key] = None
        self._keys.move_to_end(key)
        if len(self._keys) > MOST:
            self._keys.popitem(last=False)

    def discard(self, key: Hashable) -> None:
        self._keys.pop(key, None)
