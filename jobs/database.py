"""The database: engine, transactions, clock and schema upgrade, for PostgreSQL and SQLite alike."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from sqlalchemy import Engine, create_engine, event, exc, literal_column, make_url, select, text
from sqlalchemy.engine import URL, Connection
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.orm import Session

from jobs.column_types import UtcDateTime, storable_json
from jobs.errors import InvalidSettingsError
from jobs.settings import get_settings

PLANNER_LOCK = 0x52414E4B
"""Key of the advisory lock that makes planners take turns ("RANK")."""
KEY_LOCKS = 0x4B4559
"""The space of the advisory locks on clients' keys ("KEY")."""
AWAY = (exc.OperationalError, exc.InterfaceError, exc.InternalError, exc.TimeoutError)
"""What a database that is down, slow, busy or ended our transaction raises; other errors are about what was asked. From
SQLite it may also say that a table is missing, which no waiting mends."""
TIME_LIMITS = "-c statement_timeout=30s -c lock_timeout=10s -c idle_in_transaction_session_timeout=10s"
"""PostgreSQL's own, in each session of the service. The last is how long the locks of a host that is cut off in the
middle of a transaction hold: meanwhile nobody plans, or nobody frees its devices."""


class Database:
    """One engine and the transactions on it. Threads share it; a fork must make its own."""

    def __init__(self, url: str, *, for_migration: bool = False) -> None:
        """`for_migration` lets statements and locks take their time, and SQLite rebuild tables that others refer to."""
        self.url = make_url(url)
        limits = "" if for_migration else TIME_LIMITS
        self.engine = (
            _sqlite_engine(self.url, foreign_keys=not for_migration)
            if self.is_sqlite
            else _postgresql_engine(self.url, options=limits)
        )
        self._read_engine = self.engine.execution_options(read_only=True) if self.is_sqlite else self.engine

    @property
    def is_sqlite(self) -> bool:
        return self.url.get_backend_name() == "sqlite"

    @contextmanager
    def session_scope(self, *, read_only: bool = False) -> Iterator[Session]:
        """Open one transaction: commit at the end, roll back on an error.

        Under SQLite a writing transaction takes the write lock at once (BEGIN IMMEDIATE): one that reads first and
        then writes fails with "database is locked" however long it would wait.
        """
        with (
            Session(self._read_engine if read_only else self.engine, expire_on_commit=False) as session,
            session.begin(),
        ):
            yield session

    def dispose(self) -> None:
        """Close every pooled connection."""
        self.engine.dispose()


@cache
def get_database() -> Database:
    """Return this process's database, as the settings name it."""
    return Database(get_settings().database_url)


def now(session: Session) -> datetime:
    """Return the database's time: the only clock that leases are measured by."""
    if session.get_bind().dialect.name == "sqlite":
        return datetime.fromisoformat(
            session.execute(text("SELECT strftime('%Y-%m-%d %H:%M:%f', 'now')")).scalar_one()
        ).replace(tzinfo=UTC)
    moment = session.execute(select(literal_column("clock_timestamp()", UtcDateTime()))).scalar_one()
    assert isinstance(moment, datetime)
    return moment


def is_locked(error: exc.SQLAlchemyError) -> bool:
    """Whether a statement failed because another process has SQLite's write lock, and did not let go of it."""
    cause = error.orig if isinstance(error, exc.DBAPIError) else None
    return isinstance(cause, sqlite3.OperationalError) and cause.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY


def lock_planning(session: Session) -> None:
    """Wait for this transaction's turn to plan. SQLite's one writer at a time is that turn already."""
    if session.get_bind().dialect.name == "postgresql":
        session.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": PLANNER_LOCK})


def try_lock_planning(session: Session) -> bool:
    """Take this transaction's turn to plan if nobody else has it now; otherwise return False at once."""
    if session.get_bind().dialect.name != "postgresql":
        return True
    lock = text("SELECT pg_try_advisory_xact_lock(:key)")
    return bool(session.execute(lock, {"key": PLANNER_LOCK}).scalar_one())


def lock_key(session: Session, key: str) -> None:
    """Wait for this transaction's turn among all that name the same key. SQLite's one writer has it already."""
    if session.get_bind().dialect.name == "postgresql":
        session.execute(text("SELECT pg_advisory_xact_lock(:space, hashtext(:key))"), {"space": KEY_LOCKS, "key": key})


def upgrade(url: str) -> None:
    """Bring the schema to the newest revision; several processes may do so at once."""
    from alembic import command
    from alembic.config import Config

    database = Database(url, for_migration=True)
    try:
        with database.engine.begin() as connection:
            if not database.is_sqlite:
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": PLANNER_LOCK})
            config = Config()
            config.set_main_option("script_location", "migrations:")
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
            if database.is_sqlite:
                broken = connection.execute(text("PRAGMA foreign_key_check")).all()
                assert not broken, f"a revision left references to rows that are gone: {broken[:5]}"
    finally:
        database.dispose()


def _postgresql_engine(url: URL, *, options: str) -> Engine:
    if url.drivername == "postgresql":
        url = url.set(drivername="postgresql+psycopg")
    return create_engine(
        url,
        pool_pre_ping=True,
        # As many in all as the API has threads: none of them waits for another's connection.
        pool_size=5,
        max_overflow=35,
        json_serializer=storable_json,
        # Nobody waits for a database that does not answer: each of these turns silence into an error.
        connect_args={
            "connect_timeout": 5,
            "keepalives_idle": 5,
            "keepalives_interval": 2,
            "keepalives_count": 3,
            "tcp_user_timeout": 10_000,
            "options": options,
        },
    )


def _sqlite_engine(url: URL, *, foreign_keys: bool) -> Engine:
    if url.database:
        Path(url.database).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(url, connect_args={"timeout": 30}, json_serializer=storable_json)

    @event.listens_for(engine, "connect")
    def prepare(connection: DBAPIConnection, _record: object) -> None:
        connection.isolation_level = None  # sqlite3 itself must not open transactions
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=FULL")  # an accepted job survives a power cut
        cursor.execute(f"PRAGMA foreign_keys={'ON' if foreign_keys else 'OFF'}")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        read_only = connection.get_execution_options().get("read_only", False)
        connection.exec_driver_sql("BEGIN" if read_only else "BEGIN IMMEDIATE")

    return engine


if __name__ == "__main__":
    import sys

    if sys.argv[1:] != ["upgrade"]:
        sys.exit("usage: python -m jobs.database upgrade")
    try:
        upgrade(get_settings().database_url)
    except InvalidSettingsError as invalid:
        sys.exit(f"rankzero: {invalid}")
    except AWAY as failed:
        sys.exit(f"rankzero: the database that RANKZERO_DATABASE_URL names: {str(failed).splitlines()[0]}")
    except (exc.ArgumentError, exc.NoSuchModuleError):
        sys.exit("rankzero: RANKZERO_DATABASE_URL is neither postgresql+psycopg://… nor sqlite:///file")
