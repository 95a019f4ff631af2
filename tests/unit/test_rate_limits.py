"""Rate limits: a burst, then a steady pace, for each key by itself and in bounded memory."""

from collections.abc import Iterator

import pytest

from api import rate_limits
from api.rate_limits import Buckets, Known


class Time:
    """A clock that stands still until it is told otherwise."""

    moment = 1000.0

    def __call__(self) -> float:
        return self.moment


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Time]:
    clock = Time()
    with monkeypatch.context() as changed:
        changed.setattr("api.rate_limits.time.monotonic", clock)
        yield clock


def test_a_key_has_its_burst_and_then_its_pace(clock: Time) -> None:
    buckets = Buckets(per_s=2, burst=3)
    assert [buckets.take("a") for _ in range(5)] == [0, 0, 0, 0.5, 0.5]
    assert buckets.take("b") == 0
    clock.moment += 0.25
    assert buckets.wait_s("a") == 0.25
    clock.moment += 0.25
    assert [buckets.take("a"), buckets.take("a")] == [0, 0.5]


def test_who_waits_long_has_no_more_than_the_burst(clock: Time) -> None:
    buckets = Buckets(per_s=2, burst=3)
    for _ in range(3):
        buckets.take("a")
    clock.moment += 3600
    assert [buckets.take("a") for _ in range(4)] == [0, 0, 0, 0.5]


def test_asking_how_long_to_wait_costs_nothing(clock: Time) -> None:
    buckets = Buckets(per_s=1, burst=1)
    assert [buckets.wait_s("a") for _ in range(3)] == [0, 0, 0]
    assert buckets.take("a") == 0
    clock.moment += 0.5
    assert buckets.wait_s("a") == 0.5


@pytest.mark.usefixtures("clock")
def test_only_so_many_keys_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "MOST", 2)
    buckets, known = Buckets(per_s=1, burst=1), Known()
    for key in "abc":
        buckets.take(key)
        known.add(key)
    assert [buckets.wait_s(key) for key in "abc"] == [0, 1, 1]
    assert [key in known for key in "abc"] == [False, True, True]
