"""Who may do what: roles, and the principal on whose behalf a request is made."""

from dataclasses import dataclass
from enum import StrEnum


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


@dataclass(frozen=True)
class Principal:
    """Who makes a request."""

    user: str | None
    """Name of the user; None where no token is asked for (`rankzero up` on its own machine)."""
    role: Role
    token_id: int | None = None

    def may(self, role: Role) -> bool:
        return self.role.includes(role)


LOCAL = Principal(user=None, role=Role.ADMIN)
"""Whoever sits at the machine of a service that listens there alone."""
