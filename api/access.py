"""The role that each route takes: every one declares it by a parameter, which is the principal of the request.

    def drain_host(name: Name, by: Admin) -> Host: ...

Who the principal is, the gate has found out before (`api.gate`).
"""

from typing import Annotated

from fastapi import Depends, Request, Security
from fastapi.openapi.models import HTTPBearer
from fastapi.security.base import SecurityBase

from jobs.access import Principal, Role
from jobs.errors import ForbiddenError


class _Token(SecurityBase):
    """How requests name their principal, for the schema."""

    def __init__(self) -> None:
        self.scheme_name = "token"
        self.model = HTTPBearer(
            bearerFormat="rz_…",
            description="A token of a user. A service that listens on its own machine alone asks for none.",
        )

    async def __call__(self, request: Request) -> Principal:
        principal = request.state.principal
        assert isinstance(principal, Principal), "the gate lets nobody through without"
        return principal


_TOKEN = _Token()


class Requires:
    """A dependency: the principal of the request, if it has at least this role."""

    def __init__(self, role: Role) -> None:
        self.role = role

    async def __call__(self, principal: Annotated[Principal, Security(_TOKEN)]) -> Principal:
        if not principal.may(self.role):
            raise ForbiddenError(f"this takes the role {self.role}; the token of {principal.user} has {principal.role}")
        return principal


Viewer = Annotated[Principal, Depends(Requires(Role.VIEWER))]
Submitter = Annotated[Principal, Depends(Requires(Role.SUBMITTER))]
Admin = Annotated[Principal, Depends(Requires(Role.ADMIN))]
