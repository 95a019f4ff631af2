"""The page on reliability shows a whole table: every fault, all of its repeats, and nothing broken."""

import re
from pathlib import Path

import pytest

from tests.faults.matrix.faults import FAULTS
from tests.faults.matrix.table import Page

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
REPEATS = {
    **{fault.name: len(fault.strikes_in(20)) for fault in FAULTS},
    "a sequence of calls on SQLite": 5000,
    "a sequence of calls on PostgreSQL": 5000,
    "a cancel races the claim on SQLite": 1000,
    "a cancel races the claim on PostgreSQL": 1000,
    "a job of the chaos run": 1000,
}
"""How often each was to be repeated."""


@pytest.fixture(scope="module")
def page() -> Page:
    return Page.parse(PAGE.read_text())


def test_every_fault_has_its_row_and_no_other_is_left_over(page: Page) -> None:
    assert sorted(row.fault for row in page.rows) == sorted(REPEATS), "make the table anew: make faults"


def test_every_row_is_whole_and_nothing_broke(page: Page) -> None:
    shown = {row.fault: (row.repeats, row.broken) for row in page.rows}

    assert shown == {name: (str(repeats), 0) for name, repeats in REPEATS.items()}


def test_what_is_compared_with_others_is_in_the_table(page: Page) -> None:
    rows = [line.split("|")[3] for line in page.after.splitlines() if line.startswith("| a ")]
    named = {name for cell in rows for name in re.findall(r"`([^`]+)`", cell)}

    assert len(rows) == 6
    assert named <= {row.fault for row in page.rows if row.slowest}
