"""The last lines of a log, for people who are told of a failure."""

from pathlib import Path

LINES = 40
SIZE_BYTES = 8192


def read_tail(path: Path, *, lines: int = LINES, size_bytes: int = SIZE_BYTES) -> str | None:
    """Return the last lines of a log, or None where there is nothing to show."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - size_bytes))
            raw = file.read(size_bytes)
    except OSError:
        return None
    return "\n".join(raw.decode("utf-8", "replace").strip().splitlines()[-lines:]) or None
