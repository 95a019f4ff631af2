"""The table of the fault tests, made of what the tests recorded: a plugin of pytest.

A test that belongs to a row records its `fault` with `record_property`; also `repeats`, where it is more than one, and
`recovery_s`, where there is one. Runs add up: a row that a run has takes the place of the one from before.
"""

import os
import platform
import re
import shlex
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Self

import psutil
import pytest

if TYPE_CHECKING:
    from tests.faults.matrix.fault import Fault

BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"
BESIDE_THE_MATRIX = {
    ("test_sequences.py", "sqlite"): "a sequence of calls on SQLite",
    ("test_sequences.py", "postgresql"): "a sequence of calls on PostgreSQL",
    ("test_races.py", "sqlite"): "a cancel races the claim on SQLite",
    ("test_races.py", "postgresql"): "a cancel races the claim on PostgreSQL",
    ("test_chaos.py", ""): "a job of the chaos run",
}
"""The rows that are no faults of the matrix, by the file of their tests and by how the parameters of these begin.

No name has a number that an option decides: there would be another row for each number that was ever tried.
"""
HEAD = ("| fault | repeats | broken | slowest recovery | run |", "|---|---:|---:|---:|---:|")


@dataclass(frozen=True)
class Row:
    """One row, as the page has it."""

    fault: str
    repeats: str
    """How many, and how many of them were skipped or are missing."""
    broken: int
    slowest: str
    run: str
    """By which command, when and where."""


@dataclass
class Trials:
    """What a run has seen of one fault, each test counted once, whatever broke before, in or after it."""

    fault: str
    planned: int | None = None
    """How many there are to be, where that is known."""
    repeats: dict[str, int] = field(default_factory=dict)
    """By test."""
    broken: set[str] = field(default_factory=set)
    skipped: set[str] = field(default_factory=set)
    recoveries_s: list[float] = field(default_factory=list)

    def add(self, report: pytest.TestReport) -> None:
        """Count a report of one of its tests."""
        told = dict(report.user_properties)
        if report.failed:  # also of a test process that died, whose report is of no phase
            self.broken.add(report.nodeid)
        elif report.skipped:
            self.skipped.add(report.nodeid)
        elif report.when == "call" and "recovery_s" in told:
            self.recoveries_s.append(float(str(told["recovery_s"])))
        if report.failed or (report.passed and report.when == "call"):
            self.repeats[report.nodeid] = int(str(told.get("repeats", 1)))

    def row(self, run: str) -> Row:
        """Return it as a row of the page."""
        done = sum(self.repeats.values())
        repeats = str(done)
        if self.skipped:
            repeats += f", {len(self.skipped)} skipped"
        elif self.planned is not None and done < self.planned:
            repeats += f" of {self.planned}"
        slowest = f"{max(self.recoveries_s):.1f} s" if self.recoveries_s else ""
        return Row(self.fault, repeats, len(self.broken), slowest, run)


@dataclass(frozen=True)
class Page:
    """The page of documentation that shows the table between two markers."""

    before: str
    rows: Sequence[Row]
    after: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a page and the rows that earlier runs wrote into it."""
        before, begin, rest = text.partition(BEGIN)
        table, end, after = rest.partition(END)
        if not (begin and end):
            raise ValueError(f"no table can be written into a page without {BEGIN} and {END}")
        runs = dict(re.findall(r"^(\d+)\. (.+)$", table, flags=re.MULTILINE))
        cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if "|" in line]
        rows = [Row(fault, repeats, int(broken), slow, runs[run]) for fault, repeats, broken, slow, run in cells[2:]]
        return cls(before, rows, after)

    def merged(self, news: Iterable[Row], *, order: Sequence[str]) -> Self:
        """Return the page with these rows in place of those of the same faults: those of `order` first, in order.

        Of the rows of earlier runs those are dropped that `order` does not have: their fault has another name now, or
        is gone.
        """
        rows = {row.fault: row for row in [*(old for old in self.rows if old.fault in order), *news]}
        names = [name for name in order if name in rows] + [name for name in rows if name not in order]
        return type(self)(self.before, [rows[name] for name in names], self.after)

    def text(self) -> str:
        """Return the page as it is stored."""
        return f"{self.before}{BEGIN}\n" + "".join(f"{line}\n" for line in lines(self.rows)) + f"{END}{self.after}"


def lines(rows: Sequence[Row]) -> Iterator[str]:
    """The table in Markdown, followed by the runs that its last column names."""
    runs = list(dict.fromkeys(row.run for row in rows))
    yield from HEAD
    for row in rows:
        number = runs.index(row.run) + 1
        yield f"| {row.fault} | {row.repeats} | {row.broken} | {row.slowest} | {number} |"
    yield ""
    for number, run in enumerate(runs, start=1):
        yield f"{number}. {run}"


class Table:
    """Collects the rows while the tests report, and writes them when all have."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._path = Path(config.getoption("--table")) if config.getoption("--table") else None
        self._seed = config.getoption("--seed")
        self._instants = config.getoption("--instants")
        self._hold_scale = config.getoption("--hold-scale")
        self._trials: dict[str, Trials] = {}
        self._began = time.monotonic()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count what belongs to a row; what broke before it could say so is known by the id of its test."""
        fault = dict(report.user_properties).get("fault")
        if fault is None and (report.failed or report.skipped):
            fault = fault_of(report.nodeid)
        if fault is None:
            return
        self._tell_at_once(report)
        of_matrix = {each.name: each for each in _faults()} if "test_matrix.py" in report.nodeid else {}
        planned = len(of_matrix[fault].strikes_in(self._instants)) if fault in of_matrix else None
        self._trials.setdefault(str(fault), Trials(str(fault), planned)).add(report)

    def _tell_at_once(self, report: pytest.TestReport) -> None:
        """Show why a trial broke now: the run may have most of an hour to go."""
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and self._path is not None and terminal is not None:
            terminal.ensure_newline()
            terminal.write_line(report.longreprtext)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show the rows of this run, and write them where that was asked for."""
        if not self._trials:
            return
        order = names()
        rows = [trials.row(self._run()) for trials in self._trials.values()]
        shown = Page("", [], "").merged(rows, order=order)
        terminalreporter.section("faults")
        terminalreporter.write_line("\n".join(lines(shown.rows)))
        if self._path is not None:
            page = Page.parse(self._path.read_text()).merged(rows, order=order)
            self._path.write_text(page.text())

    def _run(self) -> str:
        command = shlex.join(["pytest", *sys.argv[1:]])
        scaled = "" if self._hold_scale == 1 else f", outages scaled by {self._hold_scale:g}"
        minutes = (time.monotonic() - self._began) / 60
        return (
            f"`{command}`{scaled}, seed {self._seed}, {datetime.now(UTC):%Y-%m-%d}, in {minutes:.0f} minutes on "
            f"{os.cpu_count()} cores, {psutil.virtual_memory().total / 2**30:.0f} GiB, "
            f"{platform.system()}, Python {platform.python_version()}"
        )


def names() -> list[str]:
    """The names of all rows that there may be, in order."""
    return [*(fault.name for fault in _faults()), *BESIDE_THE_MATRIX.values()]


def fault_of(nodeid: str) -> str | None:
    """Return the row of a test by its id, which is known whatever broke; None of a test without a row."""
    path, _, test = nodeid.partition("::")
    parameters = test.partition("[")[2]
    if path.endswith("test_matrix.py"):
        slug = re.sub(r"-\d+\]$", "", parameters)
        return next((fault.name for fault in _faults() if fault.slug == slug), nodeid)
    for (file, begin), name in BESIDE_THE_MATRIX.items():
        if path.endswith(file) and parameters.startswith(begin):
            return name
    return None


def _faults() -> "Sequence[Fault]":
    # Late: every run of pytest loads this plugin, and few have a row to show.
    from tests.faults.matrix.faults import FAULTS

    return FAULTS


def pytest_configure(config: pytest.Config) -> None:
    """Collect in the process that reports: under pytest-xdist that is not one of those that test."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Table(config), "fault-table")
