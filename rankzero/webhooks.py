"""What the service answers with about webhooks and their deliveries, as the client returns it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import Field

from rankzero.models import Answer


class Webhook(Answer):
    """A URL that is told of what happens to jobs."""

    id: int
    url: str
    topics: tuple[str, ...]
    """Of what it is told; empty for everything."""
    labels: Mapping[str, str]
    """Only of jobs that have all of these labels."""
    description: str | None
    enabled: bool
    created_at: datetime
    updated_at: datetime
    created_by: str | None


class SignedWebhook(Webhook):
    """A webhook with its new key."""

    key: str = Field(repr=False)
    """What its messages are signed with, `whsec_…`. It is shown this once."""


class DeliveryTry(Answer):
    """One try to deliver a message."""

    at: datetime
    took_ms: int
    status: int | None
    """HTTP status of the answer; None where there was none."""
    error: str | None
    """Why it does not count; None where it was delivered."""


class Delivery(Answer):
    """One message to one webhook."""

    id: int
    message_id: str
    topic: str
    job_id: int | None
    """None for a test."""
    payload: Mapping[str, Any]
    status: str
    """`pending`, `delivered` or `given_up`."""
    created_at: datetime
    due_at: datetime | None
    """When it is tried next; None once it is over."""
    tries: int
    delivered_at: datetime | None
    given_up_at: datetime | None
    log: tuple[DeliveryTry, ...]
    """All tries, oldest first."""
