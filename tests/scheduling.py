"""Which tests go to one test process together, and which are run beside which.

The tests of a file go together, and so does each half of the matrix of faults by itself. What waits more than it works
is run beside what works all the time: two test processes that both wait leave the machine idle, and two that both train
have to share it.
"""

import pytest
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

from tests.faults.matrix.table import fault_of, names

MATRIX = "test_matrix.py"
HALVES = 2
WAITING_FIRST = ("tests/faults", "tests/e2e", "tests/distributed")
"""From what waits most; all others work, and are short: whatever is left for the end is spread evenly."""


class ByFile(LoadFileScheduling):  # type: ignore[misc]  # pytest-xdist has no types
    """What `--dist loadfile` does, but for the matrix and the order: one process begins at one end, all others at the
    other.
    """

    def _split_scope(self, nodeid: str) -> str:
        path, _, _ = nodeid.partition("::")
        if not path.endswith(MATRIX):
            return path
        return f"{path}/{names().index(str(fault_of(nodeid))) % HALVES}"

    def _assign_work_unit(self, node: WorkerController) -> None:
        wanted = min if node is self.nodes[0] else max
        scopes = list(self.workqueue)
        self.workqueue.move_to_end(wanted(scopes, key=_tier), last=False)
        super()._assign_work_unit(node)


def _tier(scope: str) -> int:
    """The place of a file in the order."""
    return next((place for place, folder in enumerate(WAITING_FIRST) if scope.startswith(folder)), len(WAITING_FIRST))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByFile | None:
    """Schedule so under `--dist loadfile`, which `make test` asks for."""
    if config.getoption("dist") != "loadfile":
        return None
    config.option.loadscopereorder = False  # by the number of tests: the longest files, of a test or two, come last
    return ByFile(config, log)
