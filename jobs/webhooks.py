"""What a webhook is told, and where it may be: topics, the message of each, signing keys and URLs."""

import secrets
from base64 import b64encode
from datetime import datetime
from enum import StrEnum
from ipaddress import ip_address
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, HttpUrl, UrlConstraints
from pydantic_core import PydanticCustomError

from jobs.addresses import parse_allowed, refused
from jobs.settings import get_settings

TEST = "webhook.test"
"""The topic of a message that somebody asked for to see whether it arrives; no event has it."""


class WebhookTopic(StrEnum):
    """What a webhook can be told of."""

    QUEUED = "job.queued"
    """A job was submitted, or waits again: after a pause, a lost or preempted attempt, or a retry."""
    STARTING = "job.starting"
    RUNNING = "job.running"
    PAUSED = "job.paused"
    SUCCEEDED = "job.succeeded"
    FAILED = "job.failed"
    CANCELLED = "job.cancelled"
    BEST = "checkpoint.best"
    """A job saved a checkpoint that is its best so far."""


class _Told(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class FailureTold(_Told):
    """Why an attempt failed, without its traceback and its output: those may hold anything."""

    cause: str
    message: str
    rank: int | None


class JobTold(_Told):
    """The job that a message is about, as it was then."""

    id: int
    name: str
    user: str | None
    labels: dict[str, str]
    state: str
    from_state: str | None
    """Its state before; null for one that was just submitted, and where the message is not about its state."""
    attempt: int
    failure: FailureTold | None
    """Of the attempt that failed last."""


class CheckpointTold(_Told):
    """The checkpoint that a message is about."""

    id: int
    attempt: int
    step: int
    epoch: int
    host_name: str
    path: str
    sha256: str
    size_bytes: int
    values: dict[str, float | None]


class Data(_Told):
    """What happened; empty for a test."""

    job: JobTold | None = None
    checkpoint: CheckpointTold | None = None


class Message(_Told):
    """The body of a delivery, in the form that Standard Webhooks recommends."""

    type: str
    timestamp: datetime
    """When it happened, on the database's clock; a later try has the same."""
    data: Data

    def payload(self) -> dict[str, Any]:
        """Return it as it is stored and sent, without the parts of `data` that it is not about."""
        absent = {name for name in Data.model_fields if getattr(self.data, name) is None}
        return self.model_dump(mode="json", exclude={"data": absent})


def new_signing_key() -> str:
    """Return a key to sign messages with, as the libraries of Standard Webhooks take it."""
    return "whsec_" + b64encode(secrets.token_bytes(32)).decode()


def _without_user(url: HttpUrl) -> HttpUrl:
    if url.username is not None or url.password is not None:
        # It would be shown to everybody who may list webhooks.
        raise PydanticCustomError("url_user", "must not hold a user name or password: its messages are signed instead")
    return url


def _public_as_far_as_it_says(url: HttpUrl) -> HttpUrl:
    """Refuse what can be refused without asking anybody for the addresses of a name; sending checks what it meets."""
    host = (url.host or "").strip("[]")
    is_own = host.rstrip(".") == "localhost" or host.rstrip(".").endswith(".localhost")
    try:
        address = ip_address("127.0.0.1" if is_own else host)
    except ValueError:
        return url
    reason = refused(host, [address], parse_allowed(get_settings().webhook_allow))
    if reason is not None:
        raise PydanticCustomError("url_address", "{reason}", {"reason": reason})
    return url


WebhookUrl = Annotated[
    HttpUrl,
    UrlConstraints(max_length=2048),
    AfterValidator(_without_user),
    AfterValidator(_public_as_far_as_it_says),
]
"""An http or https URL on any port, whose host is not plainly one that nothing is sent to."""
