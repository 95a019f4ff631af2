"""The attendance: what a node says of the others that it waits for. Never imports torch."""

import time
from contextlib import suppress

from trainer.run_dir import RunConfig, RunDir
from trainer.terminal import say

_EVERY_S = 30.0


class Attendance:
    """Says on standard error for whom this node waits, and on node 0 now and then how many ranks have come."""

    def __init__(self, run_dir: RunDir, config: RunConfig, *, every_s: float = _EVERY_S) -> None:
        self._run_dir, self._config, self._every_s = run_dir, config, every_s
        self._said_s = time.monotonic()

    def begin(self) -> None:
        """Say for whom it will wait, and how long at most."""
        nnodes, node_rank, port = self._config.nnodes, self._config.node_rank, self._config.master_port
        if nnodes == 1:
            return
        if node_rank == 0:
            what = f"waits for {nnodes - 1} other node{'s' if nnodes > 2 else ''} at port {port}"
        else:
            what = f"looks for node 0 at {self._config.master_addr} port {port}"
        within = f"{self._config.train.timeout_s:g} s (timeout_s)"
        say(f"node {node_rank} of {nnodes}: {what}, and gives up after {within}")

    def update(self) -> None:
        """Say how many have come, if it is time to; rank 0 counts them for as long as some are missing."""
        if (now_s := time.monotonic()) - self._said_s < self._every_s:
            return
        self._said_s = now_s
        with suppress(OSError):  # what cannot be told is no reason to end a run
            progress = self._run_dir.read_progress(0)
            if progress is not None and progress.present is not None:
                say(f"{progress.present} of {self._config.world_size} ranks are here; waits for the others")
