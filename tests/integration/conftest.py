"""A fresh database for each test; and for each module the API on one of each engine, to which its tests add jobs."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from jobs.database import Database
from jobs.sealing import make_key
from tests.api_server import ApiServer
from tests.conftest import drop
from tests.integration.guarded_api import GuardedApi
from tests.integration.small_dashboard import Clone
from tests.servers import PostgresServer


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """A fresh, migrated database; the test runs once on each engine."""
    database = Database(database_url)
    yield database
    database.dispose()


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def api_database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a migrated database; the module's tests run once on each engine."""
    if request.param == "sqlite":
        template: Path = request.getfixturevalue("migrated_sqlite_template")
        yield copy_of_sqlite(template, tmp_path_factory.mktemp("database"))
        return
    postgres: PostgresServer = request.getfixturevalue("postgres_session")
    sealed: str = request.getfixturevalue("migrated_postgres_template")
    postgres.start()
    url = postgres.create_database(template=sealed)
    yield url
    drop(postgres, url)


@pytest.fixture(scope="module")
def api(api_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """The API, with no broker, on its own machine: it asks for no token."""
    with ApiServer(api_database, tmp_path_factory.mktemp("api")) as server:
        yield server


@pytest.fixture(scope="module")
def guarded(api_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedApi]:
    """The API, with no broker, that asks for tokens."""
    with GuardedApi(api_database, tmp_path_factory.mktemp("guarded-api")) as server:
        yield server


@pytest.fixture(scope="module")
def keyed(api_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """The API, with no broker, on its own machine, with a key to seal secrets with."""
    folder = tmp_path_factory.mktemp("keyed-api")
    make_key(folder / "key")
    with ApiServer(api_database, folder, key_file=folder / "key") as server:
        yield server


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    """A repository with a dashboard of a few lines, which is not built."""
    return Clone(tmp_path)


@pytest.fixture
def built(clone: Clone) -> Clone:
    """One with Node 22.12.0, whose dashboard is built."""
    clone.install_node("22.12.0")
    done = clone.build()
    assert done.returncode == 0, done.stderr
    return clone


@contextmanager
def api_on_sqlite(template: Path, folder: Path) -> Iterator[ApiServer]:
    """The API on a copy of a migrated database, with no broker."""
    with ApiServer(copy_of_sqlite(template, folder), folder) as server:
        yield server


def copy_of_sqlite(template: Path, folder: Path) -> str:
    """Copy a migrated database into a folder, and return its URL."""
    path = folder / "rankzero.db"
    with closing(sqlite3.connect(template)) as source, closing(sqlite3.connect(path)) as target:
        source.backup(target)
    return f"sqlite:///{path}"
