"""Tokens: whose they are, what they allow, and until when."""

import hashlib
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from sqlalchemy import Select, exists, or_, select, update
from sqlalchemy.orm import Session

from jobs.access import Principal, Role
from jobs.database import now
from jobs.errors import NotFoundError, StateConflictError
from jobs.tables import Token, User

SHAPE = re.compile(r"rz_[A-Za-z0-9_-]{43}")
"""What every token looks like, so that one in a log or a repository is found: a prefix, and 256 random bits."""
NOTED_EVERY = timedelta(minutes=1)
"""How exact `last_used_at` is."""


def make(
    session: Session, user: User, *, name: str, role: Role, expires_at: datetime | None = None
) -> tuple[Token, str]:
    """Store a new token of a user, and return it with its text, which nobody can read again."""
    text = "rz_" + secrets.token_urlsafe(32)
    token = Token(
        user_name=user.name,
        name=name,
        role=role,
        digest=digest(text),
        created_at=now(session),
        expires_at=expires_at,
    )
    session.add(token)
    session.flush()
    return token, text


def principal_of(session: Session, text: str) -> Principal | None:
    """Return on whose behalf a request with this token is made; None for a token that does not count now.

    It is found by its digest, so the time that takes tells nothing of any other token.
    """
    return _principal(session, select(Token, User).where(Token.digest == digest(text)))


def still_counts(session: Session, principal: Principal) -> bool:
    """Whether what a request was let in with counts now as it did then, for answers that go on for long."""
    if principal.token_id is None:
        return True
    return _principal(session, select(Token, User).where(Token.id == principal.token_id)) == principal


def get(session: Session, token_id: int, *, of: str | None) -> Token:
    """Return a token, of the user `of` where that is a name. Raises NotFoundError."""
    token = session.get(Token, token_id, populate_existing=True)
    if token is None or (of is not None and token.user_name != of):
        raise NotFoundError(f"no token {token_id}" if of is None else f"no token {token_id} of {of}")
    return token


def revoke(session: Session, token: Token) -> None:
    """Have a token count no more, from the next request on; for good.

    Raises StateConflictError where that would leave nobody with the role admin.
    """
    with keeping_an_admin(session):
        if token.revoked_at is None:
            token.revoked_at = now(session)
        session.flush()


def note_use(session: Session, token_id: int) -> None:
    """Note that a token has just been used, if that was not noted within the last minute."""
    at = now(session)
    is_due = or_(Token.last_used_at.is_(None), Token.last_used_at < at - NOTED_EVERY)
    session.execute(update(Token).where(Token.id == token_id, is_due).values(last_used_at=at))


def select_tokens(*, of: str | None) -> Select[Token]:
    """Return the query for the tokens of a user, or those of all, the newest first."""
    query = select(Token).order_by(Token.id.desc())
    return query if of is None else query.where(Token.user_name == of)


def has_admin(session: Session) -> bool:
    """Whether anybody could act as admin: there is a token for it that counts now."""
    usable = (
        select(Token.id)
        .join(User, User.name == Token.user_name)
        .where(
            Token.role == Role.ADMIN,
            User.role == Role.ADMIN,
            User.disabled_at.is_(None),
            Token.revoked_at.is_(None),
            or_(Token.expires_at.is_(None), Token.expires_at > now(session)),
        )
    )
    return bool(session.scalar(select(exists(usable))))


def hold_admins(session: Session) -> None:
    """Wait for this transaction's turn among all that may take the role admin from somebody."""
    # Of two admins who take it from each other at once, the second waits here for the first.
    session.scalars(select(User).where(User.role == Role.ADMIN).order_by(User.name).with_for_update()).all()


@contextmanager
def keeping_an_admin(session: Session) -> Iterator[None]:
    """Refuse a change to users or tokens that takes away the last admin. Raises StateConflictError.

    A service that has none, since it asks for no tokens, may stay so.
    """
    hold_admins(session)
    had_one = has_admin(session)
    yield
    if had_one and not has_admin(session):
        raise StateConflictError("that would leave nobody with a token of the role admin; make one for another first")


def digest(text: str) -> str:
    """Return what is stored of a token: 256 random bits need no salt and no slow hash."""
    return hashlib.sha256(text.encode()).hexdigest()


def _principal(session: Session, query: Select[Token, User]) -> Principal | None:
    found = session.execute(query.join(User, User.name == Token.user_name)).one_or_none()
    if found is None:
        return None
    token, user = found
    is_over = token.expires_at is not None and token.expires_at <= now(session)
    if is_over or token.revoked_at is not None or user.disabled_at is not None:
        return None
    return Principal(user=user.name, role=Role(token.role).within(Role(user.role)), token_id=token.id)
