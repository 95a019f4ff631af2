"""The time limit of a job, as the supervisor of its node 0 keeps it."""

from trainer.run_dir import RunDir
from worker.clock import clock


class TimeLimit:
    """For how long a job may still train: over all attempts, each counted from its first record on.

    Only node 0 has that record, so its supervisor alone stops the run.
    """

    def __init__(self, limit_s: float, *, trained_s: float, run_dir: RunDir) -> None:
        """`trained_s` is what its earlier attempts have spent."""
        self.limit_s = limit_s
        self._left_s = limit_s - trained_s
        self._run_dir = run_dir
        self._trains_since: float | None = None

    @property
    def is_over(self) -> bool:
        """Whether it has trained for as long as it may."""
        if self._trains_since is None and self._run_dir.journal.exists():
            self._trains_since = clock()
        spent_s = 0.0 if self._trains_since is None else clock() - self._trains_since
        return spent_s >= self._left_s
