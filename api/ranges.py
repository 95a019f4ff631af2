"""Ranges of bytes that a client asks for of a file (RFC 9110, section 14)."""

import re

_RANGE = re.compile(r"bytes\s*=\s*(\d*)\s*-\s*(\d*)", re.ASCII)
_MOST_DIGITS = 19


class RangeError(Exception):
    """A range that begins behind the end of the file."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__(f"the range begins behind the end of the file, which has {size_bytes} bytes")
        self.size_bytes = size_bytes


def byte_range(header: str, size: int) -> tuple[int, int] | None:
    """Return the range (from, behind the last byte) that a header asks for; None where it is to be ignored.

    That is one of other units or of several ranges, which may be answered with the whole file.
    """
    found = _RANGE.fullmatch(header.strip())
    if found is None or not (found[1] or found[2]) or max(map(len, found.groups())) > _MOST_DIGITS:
        return None
    if not found[1]:  # the last so many bytes
        start, end = max(size - int(found[2]), 0), size
    else:
        start, end = int(found[1]), min(int(found[2]) + 1, size) if found[2] else size
        if found[2] and int(found[2]) < start:
            return None
    if start >= size or start == end:
        raise RangeError(size)
    return start, end
