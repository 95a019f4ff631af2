"""The table of a run of the fault tests, made of what the tests recorded: a plugin of pytest.

A test that belongs to a row records its `fault` with `record_property`; also `repeats`, where it is more than one, and
`recovery_s`, where there is one.
"""

import os
import platform
import shlex
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest

BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"


@dataclass
class Row:
    """One row of the table."""

    fault: str
    repeats: int = 0
    broken: int = 0
    recoveries_s: list[float] = field(default_factory=list)


class Table:
    """Collects the rows while the tests report, and writes them when all have."""

    def __init__(self, config: pytest.Config) -> None:
        self._path = Path(config.getoption("--table")) if config.getoption("--table") else None
        self._seed = config.getoption("--seed")
        self._rows: dict[str, Row] = {}
        self._began = time.monotonic()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a repeat, once its test is over or was broken before or after it."""
        told = dict(report.user_properties)
        if "fault" not in told and not (report.failed and "tests/faults/test_matrix" in report.nodeid):
            return
        name = str(told.get("fault", report.nodeid))
        row = self._rows.setdefault(name, Row(name))
        if report.when == "call":
            row.repeats += int(str(told.get("repeats", 1)))
            row.broken += report.failed
            if "recovery_s" in told:
                row.recoveries_s.append(float(str(told["recovery_s"])))
        else:
            row.broken += report.failed

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show the table, and write it where that was asked for."""
        if not self._rows:
            return
        text = "\n".join(self._lines())
        terminalreporter.section("faults")
        terminalreporter.write_line(text)
        if self._path is not None:
            before, _, rest = self._path.read_text().partition(BEGIN)
            _, _, after = rest.partition(END)
            self._path.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")

    def _lines(self) -> Iterator[str]:
        yield "| fault | repeats | broken | slowest recovery |"
        yield "|---|---:|---:|---:|"
        for row in self._rows.values():
            slowest = f"{max(row.recoveries_s):.1f} s" if row.recoveries_s else ""
            yield f"| {row.fault} | {row.repeats} | {row.broken} | {slowest} |"
        command = shlex.join(["pytest", *sys.argv[1:]])
        yield ""
        yield (
            f"`{command}`, seed {self._seed}, {datetime.now(UTC):%Y-%m-%d}, in {self._minutes():.0f} minutes on "
            f"{os.cpu_count()} cores, {psutil.virtual_memory().total / 2**30:.0f} GiB, "
            f"{platform.system()}, Python {platform.python_version()}."
        )

    def _minutes(self) -> float:
        return (time.monotonic() - self._began) / 60


def pytest_configure(config: pytest.Config) -> None:
    """Collect in the process that reports: under pytest-xdist that is not one of those that test."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Table(config), "fault-table")
