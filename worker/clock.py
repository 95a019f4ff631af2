"""The clock that leases are kept by on a host."""

import sys
import time


def clock() -> float:
    """Seconds on a clock that nobody sets and that runs on while the machine sleeps, as the lease does."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if sys.platform == "linux" else time.monotonic()
