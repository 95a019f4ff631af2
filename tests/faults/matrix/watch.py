"""A witness of the process table: which runs had processes when, so that nothing need be believed of the database.

One look takes a while, and of two runs that it sees nobody can say that they were there at once. That is certain where
a later look than the first that sees the one still sees the other. So what lasts for less than two looks goes unseen:
beside this, leases are held against each other, and their times are exact (`tests.laws`).
"""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

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
            run_dirs = {each.run_dir for each in marked_processes() if each.run_dir}
            ended = time.monotonic()
            for run_dir in run_dirs:
                if run_dir.startswith(self._root):
                    # Each was alive at some time between: the later bound for its first, the earlier for its last.
                    sight = self._seen.setdefault(run_dir, Sight(ended, began))
                    sight.last = began

    def stop(self) -> None:
        self._stopping.set()
        self.join()

    def seen(self, placements: Sequence[Placement]) -> int:
        """How many of these had a process when it looked."""
        return sum(each.run_dir in self._seen for each in placements)

    def assert_nothing_ran_beside(self, placements: Sequence[Placement]) -> None:
        """Assert that no two attempts of a job, and no two runs on one device of a host, had processes at once."""
        sights: dict[tuple[object, ...], dict[tuple[int, int], Sight]] = {}
        for each in placements:
            if (sight := self._seen.get(each.run_dir)) is None:
                continue
            owner = (each.job_id, each.attempt)
            for shared in ((each.job_id,), *((each.host_name, device) for device in each.devices)):
                known = sights.setdefault(shared, {}).get(owner, sight)
                sights[shared][owner] = Sight(min(known.first, sight.first), max(known.last, sight.last))
        for shared, by_attempt in sights.items():
            # By their first sights: where two were seen at once, so were two neighbours.
            in_order = sorted(by_attempt.items(), key=lambda item: item[1].first)
            for ((job_id, attempt), earlier), ((next_id, next_attempt), later) in pairwise(in_order):
                assert earlier.last < later.first, (
                    f"attempt {attempt} of job {job_id} and attempt {next_attempt} of job {next_id} had processes at "
                    f"the same time{f' on {shared[1]} of {shared[0]}' if len(shared) > 1 else ''}"
                )
