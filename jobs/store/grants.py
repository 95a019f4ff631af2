"""Grants: which tokens a principal may make, and for whom."""

from datetime import datetime

from sqlalchemy.orm import Session

from jobs.access import Principal, Role
from jobs.database import now
from jobs.errors import ForbiddenError, InvalidSpecError, NotFoundError, StateConflictError
from jobs.store import tokens, users
from jobs.store.idempotency import Kind
from jobs.tables import Token, User


def make(
    session: Session,
    by: Principal,
    *,
    name: str,
    user: str | None = None,
    role: Role | None = None,
    expires_at: datetime | None = None,
) -> tuple[Token, str]:
    """Make a token on behalf of `by`, of themselves unless `user` names another, and return it with its text.

    Nobody grants more than they have: neither a greater role nor, except as admin, a longer time. Raises
    ForbiddenError, InvalidSpecError where a field is wrong, and StateConflictError for a user who is disabled.
    """
    owner = _owner(session, by, user)
    role = role or (by.role if owner.name == by.user else Role(owner.role).within(by.role))
    if not by.may(role):
        raise ForbiddenError(f"role: a token of the role {by.role} makes none of the role {role}")
    if expires_at is not None and expires_at <= now(session):
        raise InvalidSpecError("expires_at", "is over already")
    latest = None
    if by.token_id is not None and not by.may(Role.ADMIN):
        latest = tokens.get(session, by.token_id, of=by.user).expires_at
    if latest is not None and expires_at is not None and expires_at > latest:
        raise ForbiddenError(f"expires_at: the token that asks for it counts until {latest.isoformat()} itself")
    return tokens.make(session, owner, name=name, role=role, expires_at=expires_at or latest)


def _not_again(session: Session, token_id: str) -> tuple[Token, str]:
    token = tokens.get(session, int(token_id), of=None)
    raise StateConflictError(
        f"under this key token {token.id} of {token.user_name} was made, and its text is shown once: where that answer "
        f"is lost, revoke it (DELETE /tokens/{token.id}), and make another one under another key"
    )


MADE = Kind[tuple[Token, str]]("tokens", id_of=lambda made: made[0].id, again=_not_again)


def revoke(session: Session, by: Principal, token_id: int) -> None:
    """Have a token count no more on behalf of `by`: one of their own, or as admin anybody's.

    A token of a lesser role, which lies in more places, does not end a greater one of its user. Raises NotFoundError,
    ForbiddenError, and StateConflictError where that would leave nobody with the role admin.
    """
    token = tokens.get(session, token_id, of=None if by.may(Role.ADMIN) else by.user)
    allowed = Role(token.role).within(Role(users.get(session, token.user_name).role))
    if not by.may(allowed):
        raise ForbiddenError(f"a token of the role {by.role} revokes none of the role {allowed}")
    tokens.revoke(session, token)


def whose(by: Principal, user: str | None) -> str | None:
    """Return whose tokens `by` sees, None for everybody's. Raises ForbiddenError for those of another user."""
    if by.may(Role.ADMIN):
        return user
    if user not in (None, by.user):
        raise ForbiddenError(f"user: only the role admin sees the tokens of {user}")
    return by.user


def _owner(session: Session, by: Principal, user: str | None) -> User:
    wanted = user or by.user
    if wanted is None:
        raise InvalidSpecError("user", "name the user whose token it is to be: this service knows nobody by a token")
    if wanted != by.user and not by.may(Role.ADMIN):
        raise ForbiddenError(f"user: only the role admin makes tokens for {wanted}")
    try:
        owner = users.get(session, wanted)
    except NotFoundError as error:
        raise InvalidSpecError("user", f"{error}; POST /users adds one") from error
    if owner.disabled_at is not None:
        raise StateConflictError(f"user {wanted} is disabled; none of their tokens would count")
    return owner
