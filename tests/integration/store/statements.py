"""The statements that a database is given, for tests of what is written and what is not."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import event

from jobs.database import Database


@contextmanager
def written(database: Database) -> Iterator[list[str]]:
    """Every statement that writes meanwhile; the list is filled at the end."""
    writing: list[str] = []
    with executed(database) as statements:
        yield writing
    writing += [each for each in statements if each.startswith(("INSERT", "UPDATE", "DELETE"))]


@contextmanager
def executed(database: Database) -> Iterator[list[str]]:
    """Every statement meanwhile."""
    statements: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        statements.append(statement)

    event.listen(database.engine, "after_cursor_execute", note)
    yield statements
    event.remove(database.engine, "after_cursor_execute", note)
