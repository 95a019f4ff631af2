"""The backstop: ends a run whose launcher, which is there to end ranks that hang, hangs itself or was stopped."""

from trainer.run_dir import RunDir, quiet_limit_s
from worker.clock import clock

SPARE_S = 60
"""Seconds, beside twice the limit, that the launcher gets to name the rank and end the run itself."""
LOOK_S = 1
_LONGEST_LOOK_S = 5.0
"""What counts at most of the time between two looks: this process, or the machine, may have been stopped meanwhile."""


class Backstop:
    """Watches the progress files of a placement's ranks, like its launcher, but for much longer."""

    def __init__(self, run_dir: RunDir, *, local_world_size: int, limit_s: float) -> None:
        """`limit_s` is the hang limit that the launcher goes by."""
        self._run_dir = run_dir
        self._local_world_size = local_world_size
        self._limit_s = limit_s
        self._seen: list[tuple[int, int] | None] = []
        self._looked_at = clock()
        self._quiet_s = 0.0

    def hangs_for_s(self) -> float | None:
        """Return for how many seconds no rank has made progress where that is too long, or else None."""
        since_s = clock() - self._looked_at
        if since_s < LOOK_S:
            return None
        self._looked_at = clock()
        self._quiet_s += min(since_s, _LONGEST_LOOK_S)
        seen = [self._stamp(local_rank) for local_rank in range(self._local_world_size)]
        if seen != self._seen:
            self._seen, self._quiet_s = seen, 0.0
        if self._quiet_s <= 2 * self._limit_s + SPARE_S or self._quiet_s <= 2 * self._longest_limit_s() + SPARE_S:
            return None
        return self._quiet_s

    def _longest_limit_s(self) -> float:
        """What the launcher lets the rank of its ranks be quiet that may be so for longest."""
        each = [self._run_dir.read_progress(local_rank) for local_rank in range(self._local_world_size)]
        return max(quiet_limit_s(reached, self._limit_s) for reached in each)

    def _stamp(self, local_rank: int) -> tuple[int, int] | None:
        try:
            found = self._run_dir.progress(local_rank).stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size
