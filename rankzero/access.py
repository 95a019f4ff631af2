"""What the service answers with about users, tokens, secrets and the audit, as the client returns it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import Field

from rankzero.models import Answer


class Me(Answer):
    """On whose behalf the client asks."""

    user: str | None
    """None where no token is asked for."""
    role: str
    """`viewer`, `submitter` or `admin`: what the token allows."""
    token_id: int | None
    access: str
    """`loopback` or `tokens`: how the service knows who asks."""


class User(Answer):
    """Someone, or something, that may use the service."""

    name: str
    role: str
    """The most that any of their tokens allows."""
    created_at: datetime
    disabled_at: datetime | None
    """Since when none of their tokens counts."""


class Token(Answer):
    """A token, without its text."""

    id: int
    user: str
    name: str
    """What it is for."""
    role: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    """To the minute."""


class ShownToken(Token):
    """A token that has just been made, with its text."""

    token: str = Field(repr=False)
    """The text, which is shown this once."""


class Secret(Answer):
    """A secret that jobs may name, without what it holds."""

    name: str
    created_at: datetime
    updated_at: datetime
    updated_by: str | None


class AuditEvent(Answer):
    """Something that somebody did, or was refused."""

    id: int
    at: datetime
    actor: str | None
    token_id: int | None
    action: str
    """`submit_job`, `drain_host`, …"""
    subject: str | None
    """What it was done to: `jobs/7`."""
    detail: Mapping[str, Any]
    """What was asked for; `refused` says why, where it was."""
    request_id: str | None
