"""The ledger: all that a database holds, read by a connection of its own, and emptied between sequences."""

import json
import sqlite3
from typing import Any

import psycopg
from sqlalchemy import event, text

from jobs.database import Database
from jobs.tables import Base

Row = tuple[Any, ...]
TABLES = [table.name for table in Base.metadata.sorted_tables]


class Ledger:
    """One database. Some hundred thousand calls are looked at, so it is read without SQLAlchemy, which takes longer."""

    def __init__(self, database: Database) -> None:
        url = database.url
        self._connection: Any
        if database.is_sqlite:
            self._connection = sqlite3.connect(url.database or "", isolation_level=None)
        else:
            plain = url.set(drivername="postgresql").render_as_string(hide_password=False)
            self._connection = psycopg.connect(plain, autocommit=True)

    def rows(self, query: str) -> list[Row]:
        """Return what a query finds."""
        return [tuple(row) for row in self._connection.execute(query).fetchall()]

    def everything(self, *tables: str) -> dict[str, list[Row]]:
        """Return all rows of these tables, or of all there are, to show that a call changed nothing."""
        return {name: sorted(self.rows(f"SELECT * FROM {name}"), key=repr) for name in tables or TABLES}  # noqa: S608  # our own names

    def empty(self) -> None:
        """Delete every row: a new database for each sequence would take longer than the sequence."""
        self._connection.execute("BEGIN")
        for name in reversed(TABLES):
            self._connection.execute(f"DELETE FROM {name}")  # noqa: S608  # our own names
        self._connection.execute("COMMIT")

    def close(self) -> None:
        self._connection.close()


def parsed(stored: Any) -> Any:
    """Return a JSON column, which SQLite keeps as text."""
    return json.loads(stored) if isinstance(stored, str) else stored


def hurry(database: Database) -> None:
    """Have no commit of this database wait for the disk: nothing here outlives its machine. To be called first."""
    if database.is_sqlite:
        event.listen(database.engine, "connect", lambda connection, _: connection.execute("PRAGMA synchronous=OFF"))
    else:
        with database.session_scope() as session:
            session.execute(text(f'ALTER DATABASE "{database.url.database}" SET synchronous_commit = off'))
        database.dispose()  # it counts for connections from now on
