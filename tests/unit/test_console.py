"""The console of the command: what somebody else has named moves nothing on it, and stays legible."""

import io

import pytest
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from rankzero.cli.console import Console, plain

EVIL = "a\x1b]0;title\x07b\x1b[2Jc\x9b2Jd\re\u202ef"
SHOWN = "a]0;titleb[2Jc2Jdef"


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_name_that_would_move_the_cursor_is_shown_without(is_terminal: bool) -> None:
    written = io.StringIO()
    console = Console(file=written, force_terminal=is_terminal, no_color=True, highlight=False, width=100)
    table = Table(box=None, show_header=False)
    table.add_column("name")
    table.add_row(escape(EVIL))
    table.add_row(Text(EVIL))
    console.print(table)
    console.print(EVIL, markup=False, soft_wrap=True)
    assert written.getvalue().count(SHOWN) == 3
    assert not set(written.getvalue()) & {"\x1b", "\x07", "\x9b", "\r", "\u202e"}


@pytest.mark.parametrize(("columns", "lines"), [(None, 1), ("40", 4)])
def test_a_row_is_one_line_where_no_terminal_and_no_variable_says_how_wide_it_is(
    monkeypatch: pytest.MonkeyPatch, columns: str | None, lines: int
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    written = io.StringIO()
    table = Table(box=None, show_header=False)
    table.add_row("1", "waits " * 20)
    Console(file=written).print(table)
    assert len(written.getvalue().splitlines()) == lines


def test_colours_and_lines_of_our_own_stay() -> None:
    written = io.StringIO()
    Console(file=written, force_terminal=True, color_system="standard").print("[red]failed[/red]\nδλ 😀")
    assert written.getvalue() == "\x1b[31mfailed\x1b[0m\nδλ 😀\n"


def test_plain_text_is_left_as_it_is() -> None:
    assert plain(EVIL) == SHOWN
    assert plain("loss\t0.1\nδλ 😀 日本語") == "loss\t0.1\nδλ 😀 日本語"
