"""Whether the database has the schema that this version of the code needs."""

from functools import cache

from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.orm import Session

from jobs.errors import SchemaMissingError


def require_current(session: Session) -> None:
    """Raise SchemaMissingError where a migration of this version has not been applied."""
    if not _is_current(session):
        raise SchemaMissingError


def is_behind(session: Session) -> bool:
    """Whether migrations of this version are still to be applied: not so where those of a later one are."""
    known = {script.revision for script in _scripts().walk_revisions()}
    return not _is_current(session) and _applied(session) <= known


def revisions(session: Session) -> tuple[str, str]:
    """Return the revision that the database has, and the one that this version needs, as their ids."""
    return ", ".join(sorted(_applied(session))) or "none", ", ".join(sorted(_scripts().get_heads()))


def _is_current(session: Session) -> bool:
    return _applied(session) == set(_scripts().get_heads())


def _applied(session: Session) -> set[str]:
    return set(MigrationContext.configure(session.connection()).get_current_heads())


@cache
def _scripts() -> ScriptDirectory:
    config = Config()
    config.set_main_option("script_location", "migrations:")
    return ScriptDirectory.from_config(config)
