"""The missing schema: why a database that answers may still fail a worker. The tick says so; others need not."""

from sqlalchemy.exc import SQLAlchemyError

from jobs.database import Database

UPGRADE = "python -m jobs.database upgrade"
"""The command that brings it."""


def is_missing(database: Database) -> bool:
    """Whether the database answers, and lacks tables or columns that this version needs."""
    # Alembic, late: nearly no worker and no supervisor ever asks, and somebody waits for their start.
    from jobs.store import schema

    try:
        with database.session_scope(read_only=True) as session:
            return schema.is_behind(session)
    except SQLAlchemyError:
        return False
