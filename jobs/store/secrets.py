"""Secrets: sealed text that jobs are given by name. Only the supervisor of such a job opens it."""

from collections.abc import Collection, Mapping

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from jobs.access import Principal
from jobs.database import lock_key, now
from jobs.errors import InvalidSpecError, NotFoundError
from jobs.sealing import seal
from jobs.tables import Secret


def put(session: Session, name: str, value: str, *, by: Principal) -> Secret:
    """Store a secret, in place of the one of this name if there is one. Raises NoKeyError."""
    _take_turn(session, name)
    at, sealed = now(session), seal(value)
    secret = session.get(Secret, name, populate_existing=True)
    if secret is None:
        secret = Secret(name=name, created_at=at)
        session.add(secret)
    secret.sealed, secret.updated_at, secret.updated_by = sealed, at, by.user
    session.flush()
    return secret


def remove(session: Session, name: str) -> None:
    """Forget a secret; a job that names it fails when it starts. Raises NotFoundError."""
    _take_turn(session, name)
    secret = session.get(Secret, name)
    if secret is None:
        raise NotFoundError(f"no secret {name}")
    session.delete(secret)
    session.flush()


def select_secrets() -> Select[Secret]:
    """Return the query for all secrets, by name."""
    return select(Secret).order_by(Secret.name)


def require(session: Session, named: Mapping[str, str]) -> None:
    """Raise InvalidSpecError for the first variable whose secret is not there."""
    known = sealed(session, named.values())
    for variable, name in named.items():
        if name not in known:
            raise InvalidSpecError(f"secrets.{variable}", f"there is no secret {name}; PUT /secrets/{name} stores one")


def sealed(session: Session, names: Collection[str]) -> dict[str, str]:
    """Return those of the secrets that are there, by name, still sealed."""
    if not names:
        return {}
    rows = session.execute(select(Secret.name, Secret.sealed).where(Secret.name.in_(names)))
    return {name: text for name, text in rows}  # noqa: C416  # rows are no pairs to dict's types


def _take_turn(session: Session, name: str) -> None:
    """Wait until nobody else writes this secret: of two that store a new one at once there is one row."""
    lock_key(session, f"secret {name}")
