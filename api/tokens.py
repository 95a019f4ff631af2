"""What the API takes and answers of tokens."""

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from api.pages import PageQuery
from api.queries import Moment
from jobs.access import Role, UserName


class NewToken(BaseModel):
    """A token that is to be."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    name: Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[^\x00]*$")]
    """What it is for, in words: the machine, or the pipeline."""
    user: UserName | None = None
    """Whose it is; without one, that of whoever asks for it. Only the role admin makes tokens for others."""
    role: Role | None = None
    """The most that it allows; without one, the role of the token that asks for it, or of the other user."""
    expires_at: Moment | None = None
    """From when on it counts no more; without one, it does until it is revoked, or as long as the token that asks for
    it where that is no admin's."""


class Token(BaseModel):
    """A token, without its text: only its hash is stored."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    id: int
    user: Annotated[str, Field(validation_alias="user_name")]
    name: str
    role: Role
    """The most that it allows; never more than its user's role as that is now."""
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    """To the minute."""


class ShownToken(Token):
    """A token that has just been made, with its text."""

    token: str
    """Send it as `Authorization: Bearer …`. It is shown this once."""


class TokenQuery(PageQuery):
    """Which tokens."""

    user: UserName | None = None
    """Only those of this user; only the role admin sees those of others."""
