"""A witness of the process table: which runs had processes when, so that nothing need be believed of the database."""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from jobs.tables import Placement
from worker.processes import marked_processes

LOOK_EVERY_S = 0.25


@dataclass
class Sight:
    """When a run was seen to have a process, in seconds of this machine's monotonic clock."""

    first: float
    last: float


class Watch(threading.Thread):
    """Looks at all processes a few times a second, until stopped."""

    def __init__(self, root: str) -> None:
        """Watch the runs below the folder `root`."""
        super().__init__(name="watch", daemon=True)
        self._root = root
        self._seen: dict[str, Sight] = {}
        self._stopping = threading.Event()

    def run(self) -> None:
        while not self._stopping.wait(LOOK_EVERY_S):
            began = time.monotonic()
            run_dirs = {each.run_dir for each in marked_processes() if each.run_dir and not each.supervisor_of}
            ended = time.monotonic()
            for run_dir in run_dirs:
                if run_dir.startswith(self._root):
                    # Each was alive at some time between: the later bound for its first, the earlier for its last.
                    sight = self._seen.setdefault(run_dir, Sight(ended, began))
                    sight.last = began

    def stop(self) -> None:
        self._stopping.set()
        self.join()

    def assert_nothing_ran_beside(self, placements: Sequence[Placement]) -> None:
        """Assert that no two attempts of a job, and no two runs on one device of a host, had processes at once."""
        seen = [(each, self._seen[each.run_dir]) for each in placements if each.run_dir in self._seen]
        for (one, earlier), (other, later) in combinations(seen, 2):
            is_again = one.job_id == other.job_id and one.attempt != other.attempt
            shares = one.host_name == other.host_name and set(one.devices) & set(other.devices)
            if is_again or shares:
                assert earlier.last < later.first or later.last < earlier.first, (
                    f"attempt {one.attempt} of job {one.job_id} and attempt {other.attempt} of job {other.job_id} "
                    f"had processes at the same time{f' on {sorted(shares)}' if shares else ''}"
                )
