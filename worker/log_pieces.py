"""Pieces of a rank's log, as they are carried over: whole lines, and of a line that is longer whole characters."""

from pathlib import Path

PIECE_BYTES = 64 * 1024
"""Most of one log that a piece holds."""


def read_piece(path: Path, start: int, *, final: bool) -> bytes:
    """Return the next whole lines of a log from the byte `start` on, at most PIECE_BYTES.

    A line that is longer comes in several pieces, none of which ends within a character. The last line, which may have
    no end, comes with `final`.
    """
    try:
        with path.open("rb") as file:
            file.seek(start)
            raw = file.read(PIECE_BYTES)
    except FileNotFoundError:
        return b""
    whole = raw.rfind(b"\n") + 1
    if len(raw) == PIECE_BYTES:
        return raw[:whole] or _whole_characters(raw)
    return raw if final else raw[:whole]


def _whole_characters(raw: bytes) -> bytes:
    """Leave out a character of UTF-8 of which only the beginning is there; what is no UTF-8 stays as it is."""
    for length in range(1, min(4, len(raw) + 1)):
        first = raw[-length]
        if first & 0xC0 != 0x80:
            needed = 4 if first >= 0xF0 else 3 if first >= 0xE0 else 2 if first >= 0xC0 else 1
            return raw[:-length] if length < needed else raw
    return raw
