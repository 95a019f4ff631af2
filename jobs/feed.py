"""The feed's words: its topics, and the places in it."""

import re
from enum import StrEnum
from typing import NamedTuple, Self

_WRITTEN = re.compile(r"([0-9]{1,19})-([0-9]{1,19})", re.ASCII)
_MAX = 2**63 - 1


class Topic(StrEnum):
    """What a piece of news is about."""

    JOBS = "jobs"
    """An event of a job, or how far it is."""
    METRICS = "metrics"
    """Values that a run has measured."""
    LOGS = "logs"
    """Output of a run's ranks."""
    CHECKPOINTS = "checkpoints"
    """Checkpoints that were saved, or have changed since: another is the best, a file is gone, a copy is there."""
    HOSTS = "hosts"
    """A host that registered, and what an operator did with one."""


class Position(NamedTuple):
    """A place in the feed: that of the entry after which one goes on. Positions compare as their entries come."""

    xid: int
    id: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the position that was written as `text`. Raises ValueError."""
        found = _WRITTEN.fullmatch(text)
        if found is None or max(position := cls(int(found[1]), int(found[2]))) > _MAX:
            raise ValueError("not a position of the feed; take the id of an event, such as 1841-977")
        return position

    def __str__(self) -> str:
        return f"{self.xid}-{self.id}"


START = Position(0, 0)
"""Before the first entry that there ever was."""
