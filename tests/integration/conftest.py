"""The API on a database of each engine, shared by the tests of one module: each test adds jobs of its own."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.api_server import ApiServer
from tests.conftest import drop
from tests.servers import PostgresServer


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def api(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """The API, with no broker; the module's tests run once on each engine."""
    folder = tmp_path_factory.mktemp("api")
    if request.param == "sqlite":
        with api_on_sqlite(request.getfixturevalue("migrated_sqlite_template"), folder) as server:
            yield server
        return
    postgres: PostgresServer = request.getfixturevalue("postgres_session")
    sealed: str = request.getfixturevalue("migrated_postgres_template")
    postgres.start()
    url = postgres.create_database(template=sealed)
    with ApiServer(url, folder) as server:
        yield server
    drop(postgres, url)


@contextmanager
def api_on_sqlite(template: Path, folder: Path) -> Iterator[ApiServer]:
    """The API on a copy of a migrated database, with no broker."""
    path = folder / "rankzero.db"
    with closing(sqlite3.connect(template)) as source, closing(sqlite3.connect(path)) as target:
        source.backup(target)
    with ApiServer(f"sqlite:///{path}", folder) as server:
        yield server
