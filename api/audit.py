"""What the API takes and answers of the audit."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from api.pages import PageQuery
from api.queries import Moment, Text


class AuditEvent(BaseModel):
    """Something that somebody did, or was refused."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    id: int
    at: datetime
    actor: str | None
    """The user; null where no token was asked for."""
    token_id: int | None
    action: str
    """The operation, by its id in the schema: `submit_job`, `drain_host`."""
    subject: str | None
    """What it was done to, as a path: `jobs/7`."""
    detail: dict[str, Any]
    """What was asked for; `refused` says why, where it was."""
    request_id: str | None
    """What the service's log knows the request by."""


class AuditQuery(PageQuery):
    """Which events."""

    actor: Text | None = None
    """Only what this user did."""
    action: Text | None = None
    """Only this operation."""
    subject: Text | None = None
    """Only what was done to this, or to a part of it: `jobs/7`, `hosts`."""
    begin: Moment | None = Field(default=None, alias="from")
    """Only what was done at this time or later."""
    end: Moment | None = Field(default=None, alias="to")
    """Only what was done before this."""
