"""Proof of death switched off: with this folder on its path, a host's worker and supervisors believe any run dead.

Python imports this module by itself when it starts. Only the service's own processes are changed, not the user's ranks.
"""

import sys

if any(each.partition(".")[0] == "worker" for each in sys.orig_argv):
    from worker import processes

    def believe(*_: object, **__: object) -> bool:
        """Stand in for `end_run`, and neither look nor kill."""
        return True

    processes.end_run = believe
