"""Server-sent events, as a browser reads them (WHATWG HTML, section 9.2)."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx2


@dataclass(frozen=True)
class Event:
    """An event that a browser would hand to its page."""

    kind: str
    id: str
    data: Any


def events_of(answer: httpx2.Response) -> Iterator[Event]:
    """The events of a stream, until it ends. A block with no data is none, but its id counts."""
    kind, last_id, data = "message", "", ""
    for line in answer.iter_lines():
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if line == "":
            if data:
                yield Event(kind, last_id, json.loads(data))
            kind, data = "message", ""
        elif name == "event":
            kind = value
        elif name == "id":
            last_id = value
        elif name == "data":
            data += value
