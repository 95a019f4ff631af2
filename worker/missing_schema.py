"""The missing schema: why a database that answers may still fail a worker. The tick says so; others need not."""

from sqlalchemy.exc import SQLAlchemyError

from jobs.database import Database
from jobs.store import schema

UPGRADE = "python -m jobs.database upgrade"
"""The command that brings it."""


def is_missing(database: Database) -> bool:
    """Whether the database answers, and lacks tables or columns that this version needs."""
    try:
        with database.session_scope(read_only=True) as session:
            return schema.is_behind(session)
    except SQLAlchemyError:
        return False
