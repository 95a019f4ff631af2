"""Exclusive leases switched off: with this folder on its path, a host's worker plans as if no device were held.

Python imports this module by itself when it starts. The unique key of the leases is for the test to drop.
"""

import sys

if any(each.partition(".")[0] == "worker" for each in sys.orig_argv):
    from collections.abc import Iterator

    from jobs.planner.view import RunningJob
    from jobs.store import running

    def none(*_: object, **__: object) -> Iterator[RunningJob]:
        """Stand in for `running.read`, and find no job that has a device."""
        yield from ()

    running.read = none
