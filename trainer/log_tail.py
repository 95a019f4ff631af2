"""The tail of a log: what a process printed last, as its terminal would have shown it."""

import os
from pathlib import Path

from trainer.stack_dump import without_dumps

_MOST_LINES = 40
_MOST_BYTES = 8 * 1024
_READ_BYTES = 64 * 1024
"""More than is kept: a progress bar writes the same line over and over."""


def log_tail(path: Path, *, most_bytes: int = _MOST_BYTES) -> str | None:
    """Return the last 40 lines of a log, 8 KiB at most, or None where there is no log or nothing in it.

    Stacks that the hang watch has asked for are left out: they are told apart from what was printed.
    """
    try:
        with path.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - _READ_BYTES))
            content = log.read(_READ_BYTES)
    except OSError:  # what cannot be read must not hide why the run ended
        return None
    text = content.decode(errors="replace").replace("\0", "\ufffd")  # which a database refuses
    lines = [line.rstrip("\r").rpartition("\r")[2].rstrip() for line in text.rstrip().split("\n")]
    printed = "\n".join(without_dumps(lines)).rstrip("\n").split("\n")
    tail = "\n".join(printed[-_MOST_LINES:]).encode()
    return tail[-most_bytes:].decode(errors="ignore") or None
