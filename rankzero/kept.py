"""The value of a field that a change leaves as it is, where None would take it away."""

from enum import Enum
from typing import Final


class Kept(Enum):
    """The type of `KEPT`, which has no other value."""

    KEPT = "kept"

    def __repr__(self) -> str:
        return self.name


KEPT: Final = Kept.KEPT
