"""Tokens: whose they are, and what they allow."""

import hashlib

from sqlalchemy import exists, or_, select
from sqlalchemy.orm import Session

from jobs.access import Principal, Role
from jobs.database import now
from jobs.tables import Token, User


def principal_of(session: Session, token: str) -> Principal | None:
    """Return on whose behalf a request with this token is made; None for a token that does not count now.

    It is found by its digest, so the time that takes tells nothing of any other token.
    """
    query = select(Token, User).join(User, User.name == Token.user_name).where(Token.digest == digest(token))
    found = session.execute(query).one_or_none()
    if found is None:
        return None
    row, user = found
    is_over = row.expires_at is not None and row.expires_at <= now(session)
    if is_over or row.revoked_at is not None or user.disabled_at is not None:
        return None
    return Principal(user=user.name, role=Role(row.role).within(Role(user.role)), token_id=row.id)


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


def digest(token: str) -> str:
    """Return what is stored of a token: 256 random bits need no salt and no slow hash."""
    return hashlib.sha256(token.encode()).hexdigest()
