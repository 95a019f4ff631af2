"""The matrix: every fault at instants drawn by lot, and after each of them every law of the service.

`make faults` strikes 20 times with each and writes the table of docs/reliability.md; `make test` strikes once.
"""

from collections.abc import Callable, Iterator

import pytest

from tests.faults.matrix.fault import Fault, Missed
from tests.faults.matrix.faults import FAULTS
from tests.faults.matrix.lane import Lane
from tests.faults.matrix.trial import Trial
from tests.servers import PostgresServer, ValkeyServer

pytestmark = pytest.mark.timeout(400)

MOST_DRAWS = 8
"""Of instants, until one comes before the end of the job."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    repeats = metafunc.config.getoption("--instants")
    cells = [(fault, number) for number in range(repeats) for fault in FAULTS if number in fault.strikes_in(repeats)]
    metafunc.parametrize(("fault", "number"), cells, ids=[f"{fault.slug}-{number:02}" for fault, number in cells])


@pytest.fixture(scope="module")
def lanes(
    postgres_session: PostgresServer,
    valkey_session: ValkeyServer,
    migrated_postgres_template: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator["Lanes"]:
    """The lane of this test process, a new one after each trial that broke.

    It ends with this module: its workers would else take the wake-ups of later tests from the broker that all share.
    """
    lanes = Lanes(
        lambda: Lane(postgres_session, valkey_session, migrated_postgres_template, tmp_path_factory.mktemp("lane"))
    )
    yield lanes
    lanes.leave()


class Lanes:
    """Keeps a lane from trial to trial."""

    def __init__(self, start: Callable[[], Lane]) -> None:
        self._start = start
        self._lane: Lane | None = None

    def enter(self) -> Lane:
        """Return a lane in which everything runs."""
        self._lane = self._lane or self._start()
        self._lane.make_ready()
        return self._lane

    def leave(self) -> None:
        """End the lane, if there is one: what broke in it must not break the next trial, nor what breaks as it ends."""
        lane, self._lane = self._lane, None
        if lane is not None:
            lane.close()


def test_a_fault_breaks_no_law(
    fault: Fault,
    number: int,
    lanes: Lanes,
    request: pytest.FixtureRequest,
    record_property: Callable[[str, object], None],
) -> None:
    seed = f"{request.config.getoption('--seed')}/{fault.name}/{number}"
    scale = request.config.getoption("--hold-scale")
    record_property("fault", fault.name)
    trial = None
    try:
        for draw in range(MOST_DRAWS):
            trial = Trial(lanes.enter(), fault, number=number, seed=f"{seed}/{draw}", hold_scale=scale, reach=0.7**draw)
            try:
                fault.strike(trial)
            except Missed:
                trial.give_up()
                continue
            except pytest.skip.Exception:
                trial.give_up()
                raise
            break
        else:
            pytest.fail(f"{fault.name}: the job was over before each of {MOST_DRAWS} instants")
        record_property("recovery_s", trial.finish())
        trial.assert_laws_held()
    except pytest.skip.Exception:
        raise  # nothing has struck: the lane is as good as before
    except BaseException as error:
        try:
            if trial is not None:
                trial.undo(error)
        finally:
            lanes.leave()
        raise
    finally:
        if trial is not None:
            record_property("instants_s", trial.instants_s)
