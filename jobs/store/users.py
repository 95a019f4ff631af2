"""Users: who they are, and their roles."""

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from jobs.access import Role
from jobs.database import now
from jobs.errors import NotFoundError, StateConflictError
from jobs.store import tokens
from jobs.tables import User


def add(session: Session, name: str, role: Role) -> User:
    """Store a new user. Raises StateConflictError where there is one of this name."""
    if session.get(User, name) is not None:
        raise StateConflictError(f"there is a user {name} already; PATCH /users/{name} changes the role")
    user = User(name=name, role=role, created_at=now(session))
    session.add(user)
    session.flush()
    return user


def get(session: Session, name: str) -> User:
    """Return a user. Raises NotFoundError."""
    user = session.get(User, name, populate_existing=True)
    if user is None:
        raise NotFoundError(f"no user {name}")
    return user


def change(session: Session, name: str, *, role: Role | None = None, disabled: bool | None = None) -> User:
    """Give a user another role, or have none, or all, of their tokens count; from the next request on.

    Raises NotFoundError, and StateConflictError where that would leave nobody with the role admin.
    """
    with tokens.keeping_an_admin(session):
        user = get(session, name)
        if role is not None:
            user.role = role
        if disabled is not None and disabled != (user.disabled_at is not None):
            user.disabled_at = now(session) if disabled else None
        session.flush()
    return user


def select_users() -> Select[User]:
    """Return the query for all users, by name."""
    return select(User).order_by(User.name)
