"""How times are worded."""

from datetime import UTC, datetime


def since(at: datetime) -> str:
    """Return a time, and how long ago it was."""
    return f"{at.isoformat()}  ({in_words((datetime.now(UTC) - at).total_seconds())} ago)"


def in_words(seconds: float) -> str:
    """Return a duration in its two largest units."""
    whole = max(0, round(seconds))
    for unit, size, smaller, part in (("d", 86_400, "h", 3600), ("h", 3600, "m", 60), ("m", 60, "s", 1)):
        if whole >= size:
            return f"{whole // size}{unit} {whole % size // part}{smaller}"
    return f"{whole}s"
