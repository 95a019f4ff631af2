"""Users: who they are, and their roles."""

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from jobs.access import Role
from jobs.database import lock_key, now
from jobs.errors import NotFoundError, StateConflictError
from jobs.store import tokens
from jobs.store.idempotency import Kind
from jobs.tables import User


def add(session: Session, name: str, role: Role) -> User:
    """Store a new user. Raises StateConflictError where there is one of this name."""
    lock_key(session, f"user {name}")  # of two that add one name at once, the second finds the first one's
    if session.get(User, name) is not None:
        raise StateConflictError(f"there is a user {name} already; PATCH /users/{name} changes the role")
    user = User(name=name, role=role, created_at=now(session))
    session.add(user)
    session.flush()
    return user


def get(session: Session, name: str, *, held: bool = False) -> User:
    """Return a user; one that is `held` nobody else changes until this transaction is over. Raises NotFoundError."""
    if held:
        tokens.hold_admins(session)  # before the user, as all who change one do
    user = session.get(User, name, populate_existing=True, with_for_update=held)
    if user is None:
        raise NotFoundError(f"no user {name}")
    return user


ADDED = Kind[User]("users", id_of=lambda user: user.name, again=get)


def change(session: Session, name: str, *, role: Role | None = None, disabled: bool | None = None) -> User:
    """Give a user another role, or have none, or all, of their tokens count; from the next request on.

    Raises NotFoundError, and StateConflictError where that would leave nobody with the role admin.
    """
    with tokens.keeping_an_admin(session):
        user = get(session, name, held=True)
        if role is not None:
            user.role = role
        if disabled is not None and disabled != (user.disabled_at is not None):
            user.disabled_at = now(session) if disabled else None
        session.flush()
    return user


def select_users() -> Select[User]:
    """Return the query for all users, by name."""
    return select(User).order_by(User.name)
