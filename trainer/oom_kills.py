"""OOM kills: whether the kernel has ended a process for want of memory, and for whose. Never imports torch.

Source: Linux kernel, Documentation/admin-guide/cgroup-v2.rst, "Memory Interface Files" (memory.events).
"""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")
_EVERY_S = 1.0


class OomKill(Enum):
    """Whose want of memory a process was ended for."""

    OWN = "own"
    """The run's: it had come to the limit of the control group that it has to itself."""
    ANYBODY = "anybody"
    """The host's, or that of a group that the run shares: another program may have taken the memory."""


class _Counts(NamedTuple):
    kills: int = 0
    """Processes ended so: of the control group where that has a count, or else of the whole host."""
    own_limit: int = 0
    """How often the group that the run has to itself could give no more, by its own limit or one of a group in it."""


class OomKills:
    """Remembers the kernel's counts of a moment ago, so that a rank's end can be held against them.

    A process that the kernel ends for want of memory sees SIGKILL, as one that somebody ends by hand. Where no Linux
    counts, there is none.
    """

    def __init__(self, *, proc: Path = _PROC, clock: Callable[[], float] = time.monotonic) -> None:
        self._vmstat, self._clock = proc / "vmstat", clock
        group = _group(proc, "self")
        self._events = group / "memory.events" if group is not None else None
        self._has_group_to_itself = group is not None and group != _group(proc, str(os.getppid()))
        """Whoever starts a run in the group that he is in himself has not made it for the run."""
        self._looked_at = clock()
        self._before = self._latest = self._counts()

    def look(self) -> None:
        """To be called often: it looks once a second."""
        if self._clock() - self._looked_at >= _EVERY_S:
            self._looked_at = self._clock()
            self._before, self._latest = self._latest, self._counts()

    def just_now(self) -> OomKill | None:
        """Return of which kind there was one in the last second or two, if any."""
        now = self._counts()
        if now.kills <= self._before.kills:
            return None
        return OomKill.OWN if now.own_limit > self._before.own_limit else OomKill.ANYBODY

    def _counts(self) -> _Counts:
        # The kernel counts a kill for the victim's group whoever took the memory, and `oom` for the one at its limit.
        if self._events is not None and (events := _table(self._events)):
            return _Counts(events.get("oom_kill", 0), events.get("oom", 0) if self._has_group_to_itself else 0)
        return _Counts(_table(self._vmstat).get("oom_kill", 0))


def _group(proc: Path, process: str) -> Path | None:
    """Return the control group of a process in the tree of version 2, or None where it is in none that we see."""
    try:
        mounts = [line.split(" - ") for line in (proc / "self/mountinfo").read_text().splitlines()]
        groups = (proc / process / "cgroup").read_text().splitlines()
    except OSError:
        return None
    points = [before.split()[4] for before, after in mounts if after.split()[0] == "cgroup2"]
    paths = [line.removeprefix("0::") for line in groups if line.startswith("0::")]
    return Path(points[0]) / paths[0].lstrip("/") if points and paths else None


def _table(file: Path) -> dict[str, int]:
    """Read a file with a name and a number in each line; one that is not there, or is no such file, has none."""
    with suppress(OSError, ValueError):
        return {name: int(number) for name, number in (line.split() for line in file.read_text().splitlines())}
    return {}
