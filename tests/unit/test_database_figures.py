"""The figures that come from the database: asked for once in a while, however many scrape."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from api import database_figures
from api.database_figures import KEPT_S, DatabaseFigures

AtATime = Callable[[float], None]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One for each time that the database was read."""
    found: list[int] = []

    def read() -> list[Metric]:
        found.append(1)
        return [GaugeMetricFamily("rankzero_jobs", "Jobs.", value=len(found))]

    monkeypatch.setattr(database_figures, "_read", read)
    return found


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> AtATime:
    """Sets the clock that they go by."""

    def set_to(moment_s: float) -> None:
        monkeypatch.setattr(database_figures, "time", SimpleNamespace(monotonic=lambda: moment_s))

    return set_to


def test_they_are_read_once_in_a_while(reads: list[int], at: AtATime) -> None:
    figures = DatabaseFigures()
    given = []
    for moment_s in (100.0, 100.1, 100 + KEPT_S, 100.1 + KEPT_S, 100.2 + KEPT_S):
        at(moment_s)
        given.append(figures.collect()[0].samples[0].value)
    assert (given, len(reads)) == ([1, 1, 1, 2, 2], 2)


def test_those_who_scrape_at_once_share_one_reading(
    reads: list[int], at: AtATime, monkeypatch: pytest.MonkeyPatch
) -> None:
    at(100.0)
    figures, read = DatabaseFigures(), database_figures._read
    begun, may_end = threading.Event(), threading.Event()

    def slow() -> list[Metric]:
        begun.set()
        assert may_end.wait(30)
        return read()

    monkeypatch.setattr(database_figures, "_read", slow)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(figures.collect)
        assert begun.wait(30)
        second = pool.submit(figures.collect)
        may_end.set()
        assert first.result() is second.result()
    assert len(reads) == 1
