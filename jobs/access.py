"""Who may do what: roles, the principal on whose behalf a request is made, and how one is known."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from pydantic import Field

UserName = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.@+-]*$")]
"""A user's name: one that looks like no other, and like nothing else in a path."""


class Access(StrEnum):
    """How the API knows who makes a request."""

    LOOPBACK = "loopback"
    """Whoever sits at its machine may do anything; nobody else reaches it."""
    TOKENS = "tokens"
    """By the token that comes with each request."""


class Role(StrEnum):
    """What a user may do; each role may do all that the ones before it may."""

    VIEWER = "viewer"
    """Read everything."""
    SUBMITTER = "submitter"
    """Submit jobs, and do as they like with their own."""
    ADMIN = "admin"
    """Do anything, also with the jobs of others, with hosts, quotas, users, tokens and webhooks."""

    def includes(self, other: "Role") -> bool:
        """Whether this role may do all that `other` may."""
        ranks = list(Role)
        return ranks.index(self) >= ranks.index(other)

    def within(self, limit: "Role") -> "Role":
        """Return this role, or `limit` where that is less."""
        return self if limit.includes(self) else limit


@dataclass(frozen=True)
class Principal:
    """Who makes a request."""

    user: str | None
    """Name of the user; None where no token is asked for (`rankzero up` on its own machine)."""
    role: Role
    token_id: int | None = None

    def may(self, role: Role) -> bool:
        return self.role.includes(role)

    def owns(self, owner: str | None) -> bool:
        """Whether what belongs to `owner` is theirs to act on: their own, or with the role admin that of anybody."""
        return self.may(Role.ADMIN) or (owner is not None and owner == self.user)


LOCAL = Principal(user=None, role=Role.ADMIN)
"""Whoever sits at the machine of a service that listens there alone."""
