"""Steps of a worker's threads: whatever goes wrong in one is told in the log and ends no thread."""

from collections.abc import Iterator
from contextlib import contextmanager

import structlog
from sqlalchemy.exc import SQLAlchemyError

from jobs.database import Database
from worker import missing_schema

log = structlog.get_logger()


@contextmanager
def attempted(step: str, database: Database) -> Iterator[None]:
    """Take what a step raises: that the database is away, or else a defect of ours, which has its traceback."""
    try:
        yield
    except SQLAlchemyError as error:
        if not missing_schema.is_missing(database):  # of which the tick tells
            log.warning("database_away", step=step, error=str(error).splitlines()[0])
    except Exception:
        log.exception("step_failed", step=step)
