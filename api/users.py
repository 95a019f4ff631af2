"""What the API takes and answers of users."""

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from jobs.access import Access, Role, UserName
from jobs.changes import no_default


class NewUser(BaseModel):
    """A user that is to be."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    name: UserName
    role: Role
    """The most that any of their tokens allows."""


class UserChanges(BaseModel):
    """Changes to a user; what is left out stays as it is."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    role: Role = Field(default=Role.VIEWER, json_schema_extra=no_default)
    disabled: bool = Field(default=False, strict=True, json_schema_extra=no_default)
    """Whether none of their tokens counts."""


class User(BaseModel):
    """Someone, or something, that may use the service."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    name: str
    role: Role
    created_at: datetime
    disabled_at: datetime | None
    """Since when none of their tokens counts."""


class Me(BaseModel):
    """On whose behalf a request is made."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    user: str | None
    """Null where no token is asked for."""
    role: Role
    """What the token allows, which is never more than its user's role."""
    token_id: int | None
    access: Access
    """How the service knows who makes a request."""
