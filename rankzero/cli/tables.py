"""Tables without lines, and the parts of their cells."""

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from datetime import datetime

UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def table(*headings: str) -> Table:
    """Return an empty table; what is too long for its column goes on below."""
    made = Table(box=None, pad_edge=False)
    for heading in headings:
        made.add_column(heading, overflow="fold")
    return made


def one_line(text: str) -> Text:
    """Return a cell that is cut where its column ends. The column must be one that may shrink."""
    return Text(text, no_wrap=True, overflow="ellipsis")


def size_of(count: float) -> str:
    """Return a number of bytes in the largest unit that it fills."""
    unit = 0
    while count >= 1024 and unit < len(UNITS) - 1:
        count, unit = count / 1024, unit + 1
    return f"{count:.0f} {UNITS[unit]}" if unit == 0 else f"{count:.1f} {UNITS[unit]}"


def minute(at: "datetime | None") -> str:
    """Return a time to the minute, in UTC; empty for none."""
    return "" if at is None else f"{at:%Y-%m-%d %H:%M}"
