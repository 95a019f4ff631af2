"""Which tests go to one test process together: those of a file, and each half of the matrix of faults by itself.

A trial of the matrix waits more than it works: two test processes, each with a service of its own, need half the time.
"""

import pytest
from xdist.scheduler import LoadFileScheduling

from tests.faults.matrix.table import fault_of, names

MATRIX = "test_matrix.py"
HALVES = 2


class ByFile(LoadFileScheduling):  # type: ignore[misc]  # pytest-xdist has no types
    """What `--dist loadfile` does, but for the matrix."""

    def _split_scope(self, nodeid: str) -> str:
        path, _, _ = nodeid.partition("::")
        if not path.endswith(MATRIX):
            return path
        return f"{path}/{names().index(str(fault_of(nodeid))) % HALVES}"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByFile | None:
    """Schedule so under `--dist loadfile`, which `make test` asks for."""
    return ByFile(config, log) if config.getoption("dist") == "loadfile" else None
