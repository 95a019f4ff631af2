"""OOM kills: whether the kernel has ended some process for want of memory a moment ago. Never imports torch."""

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_VMSTAT = Path("/proc/vmstat")
_EVERY_S = 1.0


def _kills() -> int:
    """Return how many the kernel has ended so since it started, in any container; 0 where it does not say (Linux)."""
    with suppress(OSError, ValueError):
        for line in _VMSTAT.read_text().splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0


class OomKills:
    """Remembers the kernel's count of a moment ago, so that a rank's end can be held against it.

    A process that the kernel ends for want of memory sees SIGKILL, as one that somebody ends by hand.
    """

    def __init__(self, *, kills: Callable[[], int] = _kills, clock: Callable[[], float] = time.monotonic) -> None:
        self._kills, self._clock = kills, clock
        self._looked_at = clock()
        self._before = self._latest = kills()

    def look(self) -> None:
        """To be called often: it looks once a second."""
        if self._clock() - self._looked_at >= _EVERY_S:
            self._looked_at = self._clock()
            self._before, self._latest = self._latest, self._kills()

    def has_just_killed(self) -> bool:
        """Whether there was one in the last second or two."""
        return self._kills() > self._before
