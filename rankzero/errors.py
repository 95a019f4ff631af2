"""The errors that the client, the command and the embedded service raise; each message is one line for people."""


class RankzeroError(Exception):
    """Base of every error that this package raises on purpose."""


class UsageError(RankzeroError, ValueError):
    """What was asked for makes no sense as written; nothing was sent."""


class UnreachableError(RankzeroError):
    """No service answers at the URL, or its database does not answer now: the same may succeed later."""


class RefusedError(RankzeroError):
    """The service refused the request; `status` is the HTTP status, `fields` says what is wrong with which field."""

    def __init__(self, message: str, *, status: int, fields: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.fields = fields or {}


class WaitTimeoutError(RankzeroError):
    """The job was not over in the time given; it goes on."""


class EmbeddedError(RankzeroError):
    """The embedded service cannot start, or cannot go on."""


class DemoError(RankzeroError):
    """The demonstration did not end as it must."""
