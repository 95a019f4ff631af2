"""Whether the database has the schema that this version of the code needs."""

from functools import cache

from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.orm import Session


def is_current(session: Session) -> bool:
    """Whether every migration of this version has been applied."""
    return set(MigrationContext.configure(session.connection()).get_current_heads()) == _newest()


@cache
def _newest() -> set[str]:
    config = Config()
    config.set_main_option("script_location", "migrations:")
    return set(ScriptDirectory.from_config(config).get_heads())
