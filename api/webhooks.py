"""What the API takes and answers of webhooks and their deliveries."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, computed_field

from jobs.changes import no_default
from jobs.spec import MOST_LABELS, LabelKey, LabelValue
from jobs.webhooks import WebhookTopic, WebhookUrl

Topics = Annotated[list[WebhookTopic], Field(max_length=64)]
Labels = Annotated[dict[LabelKey, LabelValue], Field(max_length=MOST_LABELS)]
Description = Annotated[str, Field(max_length=255, pattern=r"^[^\x00]*$")]


class _Taken(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class _Shown(BaseModel):
    model_config = ConfigDict(from_attributes=True, frozen=True, use_attribute_docstrings=True)


class WebhookSetting(_Taken):
    """A URL that wants to be told of what happens to jobs."""

    url: WebhookUrl
    """http or https, on any port, with no user name. Its address must be public, or allowed by the operator."""
    topics: Topics = []
    """Of what it is told; empty for everything."""
    labels: Labels = {}
    """Only of jobs that have all of these labels."""
    description: Description | None = None
    enabled: bool = Field(default=True, strict=True)
    """Whether it is told anything now."""


class WebhookChanges(_Taken):
    """What becomes different of a webhook; what is left out stays, and what is null too, but for `description`."""

    url: WebhookUrl | None = None
    topics: Topics | None = None
    labels: Labels | None = None
    description: Description | None = Field(default=None, json_schema_extra=no_default)
    """Null takes it away."""
    enabled: bool | None = Field(default=None, strict=True)
    """False gives up what it has not been told yet; each of that may be delivered again later."""

    @property
    def values(self) -> dict[str, Any]:
        """The new values, as they are stored."""
        given = self.model_dump(mode="json", exclude_unset=True)
        return {name: value for name, value in given.items() if value is not None or name == "description"}


class Webhook(_Shown):
    """A URL that is told of what happens to jobs."""

    id: int
    url: str
    topics: list[str]
    """Of what it is told; empty for everything."""
    labels: dict[str, str]
    """Only of jobs that have all of these labels."""
    description: str | None
    enabled: bool
    """Whether it is told anything now; an answer of 410 disables it."""
    created_at: datetime
    updated_at: datetime
    created_by: str | None


class SignedWebhook(Webhook):
    """A webhook with its new key."""

    key: str
    """What its messages are signed with, `whsec_…`, as the libraries of Standard Webhooks take it. Shown this once."""


class DeliveryTry(_Shown):
    """One try to deliver a message."""

    at: datetime
    took_ms: int
    status: int | None
    """HTTP status of the answer; null where there was none."""
    error: str | None
    """Why it does not count; null where it was delivered."""


class Delivery(_Shown):
    """One message to one webhook."""

    id: int
    message_id: str
    """`webhook-id` of every try."""
    topic: str
    job_id: int | None
    """The job that it tells of; null for a test."""
    payload: dict[str, Any]
    """The body that is sent."""
    created_at: datetime
    due_at: datetime | None
    """When it is tried next; null once it is over."""
    tries: int
    """Tries begun since it was written, or since somebody had it delivered again."""
    delivered_at: datetime | None
    given_up_at: datetime | None
    log: list[DeliveryTry]
    """All tries, oldest first."""

    @computed_field  # type: ignore[prop-decorator]  # pydantic's own advice: mypy does not know decorated properties
    @property
    def status(self) -> Literal["pending", "delivered", "given_up"]:
        """Where it is."""
        if self.due_at is not None:
            return "pending"
        return "delivered" if self.delivered_at is not None else "given_up"
