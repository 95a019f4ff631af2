"""The instants at which a run of the matrix struck, shown when it is over: a plugin of pytest.

A trial records its `instants_s`, all that it drew; by the seed they are drawn again.
"""

import re
from collections.abc import Sequence

import pytest


class Instants:
    """Collects them while the trials report."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._by_fault: dict[str, dict[int, str]] = {}
        """What each trial drew, by its number."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what a trial tells of, whether it broke or not."""
        told = dict(report.user_properties)
        number = re.search(r"-(\d+)\]$", report.nodeid)
        if report.when == "call" and number and isinstance(drawn := told.get("instants_s"), Sequence):
            shown = "+".join(f"{float(str(each)):.2f}" for each in drawn) or "-"
            self._by_fault.setdefault(str(told["fault"]), {})[int(number[1])] = shown

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show them, a line for each fault, in the order of its trials."""
        if not self._by_fault:
            return
        terminalreporter.section(f"instants in seconds, drawn by the seed {self._seed}; several of one trial with a +")
        for fault, drawn in self._by_fault.items():
            terminalreporter.write_line(f"{fault}: {' '.join(drawn[number] for number in sorted(drawn))}")


def pytest_configure(config: pytest.Config) -> None:
    """Collect in the process that reports: under pytest-xdist that is not one of those that test."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Instants(config.getoption("--seed")), "fault-instants")
