"""What every test may ask for: fresh migrated databases on both engines, and an empty broker."""

import os
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.servers import PostgresServer, ValkeyServer

TESTS = Path(__file__).parent
pytest_plugins = ["tests.faults.matrix.table", "tests.faults.matrix.instants", "tests.scheduling"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--kills", type=int, default=2, help="runs that tests/distributed/test_random_kills.py kills")
    parser.addoption("--streams", type=int, default=200, help="streams that tests/unit/planner/test_streams.py plays")
    parser.addoption("--instants", type=int, default=1, help="instants at which each fault of the matrix strikes")
    parser.addoption(
        "--hold-scale", type=float, default=0.1, help="share of their full length that the outages of the matrix last"
    )
    parser.addoption(
        "--seed", default="2026", help="decides every draw of the fault tests, and of long runs of schemathesis"
    )
    parser.addoption("--sequences", type=int, default=60, help="sequences of calls on each database")
    parser.addoption("--races", type=int, default=60, help="cancels that race a claim on each database")
    parser.addoption("--chaos", type=int, default=20, help="jobs that run while all faults strike")
    parser.addoption(
        "--schema-examples", type=int, default=3, help="requests that schemathesis draws for each operation, and chains"
    )
    parser.addoption(
        "--screenshots", action="store_true", help="write the pictures of the dashboard into docs/screenshots"
    )
    parser.addoption("--table", help="Markdown file in which the fault tests are to write their table")
    parser.addoption(
        "--runs", type=int, default=1, help="slow runs that tests/distributed/test_false_alarms.py watches"
    )


def pytest_configure() -> None:
    # Under nohup, or in the background of a script, one is ignored, here and in every process that a test starts, which
    # makes them other programs.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # The settings of a developer's own service must not reach the tests: they would drop its data.
    for name in [name for name in os.environ if name.startswith("RANKZERO_")]:
        del os.environ[name]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test with its tier, which is the name of its folder."""
    for item in items:
        if item.path.is_relative_to(TESTS):
            item.add_marker(item.path.relative_to(TESTS).parts[0])


def migrate(url: str) -> None:
    """Bring the empty database at `url` to the newest revision, as an installation does."""
    # Imported late: a broken migration fails the tests that need a database and no others.
    from jobs.database import upgrade

    upgrade(url)


@pytest.fixture(scope="session")
def postgres_session() -> Iterator[PostgresServer]:
    """This test process's PostgreSQL. Tests use `postgres`, which is running for certain."""
    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="session")
def valkey_session() -> Iterator[ValkeyServer]:
    """This test process's Valkey. Tests use `valkey`, which is running for certain and empty."""
    with ValkeyServer() as server:
        yield server


@pytest.fixture
def postgres(postgres_session: PostgresServer) -> PostgresServer:
    """A running PostgreSQL that the test may stop, kill and start; the next test finds it running again."""
    postgres_session.start()
    return postgres_session


@pytest.fixture
def valkey(valkey_session: ValkeyServer) -> ValkeyServer:
    """A running, empty Valkey that the test may stop, kill, flush and start; the next test finds it running again."""
    valkey_session.start()
    valkey_session.flushall()
    return valkey_session


@pytest.fixture
def broker_url(valkey: ValkeyServer) -> str:
    """The URL of an empty broker."""
    return valkey.url


@pytest.fixture(scope="session")
def migrated_postgres_template(postgres_session: PostgresServer) -> str:
    """The name of a migrated database to copy from: a copy takes a fraction of the time of the migrations."""
    postgres_session.start()
    url = postgres_session.create_database()
    migrate(url)
    return postgres_session.seal(url)


@pytest.fixture(scope="session")
def migrated_sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a migrated database to copy from."""
    path = tmp_path_factory.mktemp("sqlite-template") / "rankzero.db"
    migrate(f"sqlite:///{path}")
    return path


@pytest.fixture
def postgresql_url(postgres: PostgresServer, migrated_postgres_template: str) -> Iterator[str]:
    """The URL of a fresh, migrated PostgreSQL database."""
    url = postgres.create_database(template=migrated_postgres_template)
    yield url
    drop(postgres, url)


@pytest.fixture
def sqlite_url(migrated_sqlite_template: Path, tmp_path: Path) -> str:
    """The URL of a fresh, migrated SQLite database."""
    path = tmp_path / "rankzero.db"
    # Not a copy of the file: committed pages may still stand in the write-ahead log beside it.
    with closing(sqlite3.connect(migrated_sqlite_template)) as source, closing(sqlite3.connect(path)) as target:
        source.backup(target)
    return f"sqlite:///{path}"


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str:
    """The URL of a fresh, migrated database; the test runs once on each engine."""
    url = request.getfixturevalue(f"{request.param}_url")
    assert isinstance(url, str)
    return url


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a database with no table in it, for tests of the migrations; the test runs once on each engine."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'empty.db'}"
        return
    server = request.getfixturevalue("postgres")
    assert isinstance(server, PostgresServer)
    url = server.create_database()
    yield url
    drop(server, url)


def drop(server: PostgresServer, url: str) -> None:
    """Drop a test's database, also when the test left the server down."""
    server.start()
    server.drop_database(url)
