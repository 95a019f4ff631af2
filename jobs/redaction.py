"""Redaction: what must not stand in a log, whoever put it there."""

import re

from structlog.typing import EventDict, WrappedLogger

_HIDDEN = (
    # None needs the end of a word before it: of a line that begins with one, JSON makes `\nrz_…`.
    (re.compile(r"rz_[A-Za-z0-9_-]{43}"), "rz_***"),
    (re.compile(r"whsec_[A-Za-z0-9+/=_-]+"), "whsec_***"),
    (re.compile(r"(?i)(bearer|basic) +[A-Za-z0-9._~+/=-]{8,}"), r"\1 ***"),
    # The user and password of a URL: a database's, a broker's, an object store's.
    (re.compile(r"(?i)\b([a-z][a-z0-9+.-]*://)[^\s/@\"\\]*:[^\s/@\"\\]*@"), r"\1***@"),
)


def redact(text: str) -> str:
    """Return text without tokens, keys and passwords, as far as they can be told by how they look."""
    for pattern, shown in _HIDDEN:
        text = pattern.sub(shown, text)
    return text


def redact_line(_logger: WrappedLogger, _method: str, line: str | EventDict) -> str:
    """The last processor of a log: it sees the whole line as it is written, tracebacks and all."""
    assert isinstance(line, str), "it comes after the renderer"
    return redact(line)
