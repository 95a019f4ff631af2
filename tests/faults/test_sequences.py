"""Sequences of calls drawn by lot, on both databases: after each call, all rows are what a model in plain Python says.

`make sequences` plays 5,000 on each; `make test` a few.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil

import pytest
from hypothesis import HealthCheck, Phase, Verbosity, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from jobs.database import Database
from jobs.settings import get_settings
from tests.faults.matrix.table import fault_of
from tests.faults.sequences.ledger import Ledger, hurry
from tests.faults.sequences.machine import Machine
from tests.faults.sequences.play import QUARANTINE_AFTER

pytestmark = pytest.mark.timeout(1800)

CALLS = 25
"""Of one sequence, before everything is let come to its end."""
MOST_AT_ONCE = 500
"""Sequences of one test, so that several processes can share them."""
ENGINES = ("sqlite", "postgresql")


@dataclass(frozen=True)
class Portion:
    """The sequences of one test."""

    engine: str
    number: int
    count: int


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    wanted = metafunc.config.getoption("--sequences")
    tests = ceil(wanted / MOST_AT_ONCE)
    counts = [wanted // tests + (number < wanted % tests) for number in range(tests)]
    portions = [Portion(engine, number, count) for engine in ENGINES for number, count in enumerate(counts)]
    metafunc.parametrize("portion", portions, ids=[f"{each.engine}-{each.number:02}" for each in portions])


@pytest.fixture
def database(portion: Portion, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    """A fresh, migrated database whose commits do not wait for the disk."""
    # Time passes when the sequence says so, and never by itself, however long its calls take.
    policy = {"RETRY_BACKOFF_S": 1800, "RETRY_BACKOFF_MAX_S": 1800, "HOST_TIMEOUT_S": 1800, "LEASE_S": 1800}
    # Nobody is spared a preemption that is due.
    policy |= {"PREEMPTION_PATIENCE_S": 0, "QUARANTINE_AFTER": QUARANTINE_AFTER}
    for name, value in policy.items():
        monkeypatch.setenv(f"RANKZERO_{name}", str(value))
    get_settings.cache_clear()
    database = Database(request.getfixturevalue(f"{portion.engine}_url"))
    hurry(database)
    yield database
    database.dispose()
    get_settings.cache_clear()


def test_no_sequence_of_calls_breaks_a_law(
    database: Database,
    portion: Portion,
    request: pytest.FixtureRequest,
    record_property: Callable[[str, object], None],
) -> None:
    record_property("fault", fault_of(request.node.nodeid))
    record_property("repeats", portion.count)
    ledger = Ledger(database)

    @seed(f"{request.config.getoption('--seed')}/{portion.number}")
    class OnThisDatabase(Machine):
        pass

    OnThisDatabase.database, OnThisDatabase.ledger, OnThisDatabase.played = database, ledger, 0
    try:
        run_state_machine_as_test(
            OnThisDatabase,
            settings=settings(
                max_examples=portion.count,
                stateful_step_count=CALLS,
                database=None,
                deadline=None,
                derandomize=False,
                print_blob=True,
                verbosity=Verbosity.normal,
                phases=[Phase.generate, Phase.shrink],
                # It is the databases that take their time.
                suppress_health_check=[HealthCheck.too_slow],
            ),
        )
    finally:
        ledger.close()
    assert OnThisDatabase.played >= portion.count
