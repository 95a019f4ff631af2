"""The errors that the client, the command and the embedded service raise; each message is one line for people."""

from collections.abc import Mapping
from typing import Any


class RankzeroError(Exception):
    """Base of every error that this package raises on purpose."""


class UsageError(RankzeroError, ValueError):
    """What was asked for makes no sense as written, or there is no such checkpoint; nothing was changed."""


class UnreachableError(RankzeroError):
    """No service answers at the URL, or its database does not answer now: the same may succeed later."""


class RefusedError(RankzeroError):
    """The service refused the request; `status` is the HTTP status, `fields` says what is wrong with which field."""

    def __init__(
        self,
        message: str,
        *,
        status: int,
        fields: dict[str, str] | None = None,
        problem: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.fields = fields or {}
        self.problem = problem or {}
        """The whole problem document (RFC 9457): `request_id` is what the service's log knows the request by."""
        self.may_be_done = False
        """Whether the same request was sent before and its answer lost: it may be refused for being done already."""


class WaitTimeoutError(RankzeroError):
    """The job was not over in the time given; it goes on."""


class DownloadError(RankzeroError):
    """A file did not arrive as it was sent, or cannot be written."""


class MissingPackageError(RankzeroError, ImportError):
    """A package is not installed that this takes and the rest does without; the message says how to install it."""


class EmbeddedError(RankzeroError):
    """The embedded service cannot start, or cannot go on."""


class DemoError(RankzeroError):
    """The demonstration did not end as it must."""
