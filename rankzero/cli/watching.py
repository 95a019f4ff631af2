"""A table of jobs that stays on the terminal and shows them as they are now."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from rankzero.cli.console import Console
from rankzero.cli.output import HEADINGS, cells_of, in_colour
from rankzero.cli.tables import one_line
from rankzero.errors import UnreachableError, UsageError

if TYPE_CHECKING:
    from rankzero.models import Job

EVERY_S = 2.0
"""Seconds between two looks: a job's place in the line changes with every plan, and no event tells of that."""
ROWS_AROUND = 4
"""Rows of the terminal that are no job's: the headings, the line below, and the cursor's."""
SHRINKING = frozenset({"NAME", "DEVICE", "NOTE"})


def watch(read: Callable[[], Sequence[Job]], console: Console) -> None:
    """Show what `read` returns, again and again until Ctrl-C. Raises UsageError where there is no terminal.

    A service that does not answer for a while leaves the last table in place, with a line that says so.
    """
    if not console.can_redraw:
        raise UsageError("--watch shows a table that changes, on a terminal; for a list as it is now leave it out")
    jobs = read()
    seen_at = time.monotonic()
    with suppress(KeyboardInterrupt), Live(console=console, auto_refresh=False) as live:
        while True:
            live.update(table_of(jobs, console, silent_s=time.monotonic() - seen_at), refresh=True)
            time.sleep(EVERY_S)
            with suppress(UnreachableError):
                jobs = read()
                seen_at = time.monotonic()


def table_of(jobs: Sequence[Job], console: Console, *, silent_s: float) -> Group:
    """Return as many jobs as the terminal has rows for, a line each, and a line about them."""
    table = Table(box=None, pad_edge=False, expand=False)
    for heading in HEADINGS:
        table.add_column(heading, no_wrap=heading not in SHRINKING)
    shown = jobs[: max(1, console.height - ROWS_AROUND)]
    for job in shown:
        ahead, name, device, *rest, note = cells_of(job)
        state = Text.from_markup(in_colour(job.state))
        table.add_row(ahead, state, one_line(name), one_line(device), *rest, one_line(note))
    words = [f"{datetime.now():%H:%M:%S}", f"{len(jobs)} jobs" if len(jobs) != 1 else "1 job"]  # noqa: DTZ005  # the clock on the wall
    if len(shown) < len(jobs):
        words.append(f"{len(jobs) - len(shown)} more than there are rows for")
    if silent_s > 2 * EVERY_S:
        words.append(f"the service has not answered for {silent_s:.0f} s")
    return Group(table, Text("; ".join(words), style="dim", no_wrap=True, overflow="ellipsis"))
