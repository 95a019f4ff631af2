"""What all tables have in common: the names of constraints, the types of columns."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, CheckConstraint, Double, Integer, MetaData, String
from sqlalchemy.orm import DeclarativeBase

from jobs.access import Role
from jobs.column_types import UtcDateTime
from jobs.states import Intent, Outcome, State

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}
Id = BigInteger().with_variant(Integer, "sqlite")
"""SQLite counts up by itself only on INTEGER."""


class Base(DeclarativeBase):
    metadata = MetaData(naming_convention=NAMING)
    type_annotation_map = {  # noqa: RUF012  # SQLAlchemy's own class attribute
        datetime: UtcDateTime(),
        dict[str, Any]: JSON(),
        dict[str, str]: JSON(),
        list[dict[str, Any]]: JSON(),
        list[str]: JSON(),
        str: String(255),
        float: Double(),
    }


def one_of(column: str, values: type[State] | type[Intent] | type[Outcome] | type[Role]) -> CheckConstraint:
    """Return the constraint that a column holds one of these values."""
    listed = ", ".join(f"'{value.value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=column)
