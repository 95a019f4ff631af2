"""The console: rich's, on which no text of somebody else's moves the cursor or passes for another."""

import os
from collections.abc import Iterable
from typing import Any

import rich.console
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment

WIDEST = 100_000
"""Columns where nothing sets a limit."""
_CONTROLS = {*range(0x20), *range(0x7F, 0xA0)} - {ord("\t"), ord("\n")}
_TURNS = {*range(0x202A, 0x202F), *range(0x2066, 0x206A)}
"""What turns the direction of the text after it."""
_LEFT_OUT = dict.fromkeys(_CONTROLS | _TURNS)
"""None of these has a width, so that no column is out of place without."""


def plain(text: str) -> str:
    """Return text without what a terminal would do instead of show: a job's name may be anybody's."""
    return text.translate(_LEFT_OUT)


class Console(rich.console.Console):
    """Where people read what the service says. What is no terminal has lines of any length: a row is one line, to be
    searched and counted, unless COLUMNS says how wide it is."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        if options.get("width") is None and not self.is_terminal and "COLUMNS" not in os.environ:
            self.width = WIDEST

    @property
    def can_redraw(self) -> bool:
        """Whether it is a terminal on which what has been shown can change: on a dumb one nothing would show at all."""
        return self.is_terminal and not self.is_dumb_terminal

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Return what is written; colours and moves of our own are no text, and stay."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(plain(segment.text), segment.style)
