"""What every part of the client has: the connection to its service."""

from urllib.parse import quote

from rankzero.connection import Connection


class Resource:
    """Methods about one kind of thing, over a connection that all parts share."""

    _connection: Connection


def part(name: str) -> str:
    """Return a name as one part of a path, whatever is in it."""
    return quote(name, safe="")
