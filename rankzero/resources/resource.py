"""What every part of the client has: the connection to its service."""

from urllib.parse import quote

from rankzero.connection import Connection
from rankzero.errors import UsageError


class Resource:
    """Methods about one kind of thing, over a connection that all parts share."""

    _connection: Connection


def part(name: str) -> str:
    """Return a name as one part of a path, whatever is in it. Raises UsageError for what is no text."""
    try:
        return quote(name, safe="")
    except UnicodeEncodeError as error:
        raise UsageError(f"{name!r} is no text that can be sent") from error
