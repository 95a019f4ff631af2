"""The trainer asked already: with this folder on its path, a host's worker publishes the catalog of the file CATALOG.

Python imports this module by itself when it starts. Only the worker is changed: it asks in a process that loads torch.
"""

import sys

if sys.orig_argv[1:] == ["-m", "worker"]:
    import json
    import os
    from pathlib import Path

    from worker import host

    def read_catalog() -> dict[str, object] | None:
        """Stand in for `host.read_catalog`: what the same trainer has said to another."""
        catalog: dict[str, object] = json.loads(Path(os.environ["CATALOG"]).read_text())
        return catalog

    host.read_catalog = read_catalog
