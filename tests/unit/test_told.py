"""What a client remembers of the news that it has told: each once, and in memory that does not grow with the run."""

import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from rankzero import numbers
from rankzero.models import Event, LogChunk, Metric
from rankzero.news import EventNews, LogNews, MetricNews
from rankzero.numbers import Numbers
from rankzero.told import Told

AT = datetime(2026, 3, 1, tzinfo=UTC)
REPORTS = 4_000


def values(*steps: int, name: str = "loss", attempt: int = 1) -> MetricNews:
    items = [
        Metric.model_construct(name=name, step=step, epoch=1, attempt=attempt, at=AT, value=0.5, kind=None)
        for step in steps
    ]
    return MetricNews.model_construct(job_id=7, items=tuple(items))


def pieces(*offsets: int, rank: int = 0) -> LogNews:
    items = [LogChunk.model_construct(id=1, attempt=1, rank=rank, offset=each, text="x", at=AT) for each in offsets]
    return LogNews.model_construct(job_id=7, items=tuple(items))


def event(number: int) -> EventNews:
    happened = Event(id=number, attempt=1, at=AT, kind="note", from_state=None, to_state=None, detail={})
    return EventNews.model_construct(job_id=7, event=happened)


def steps_of(news: object) -> list[int]:
    return [value.step for value in news.items] if isinstance(news, MetricNews) else []


@given(st.lists(st.integers(-30, 200)))
def test_a_number_is_added_once_in_whatever_order_they_come(added: list[int]) -> None:
    seen: set[int] = set()
    found = Numbers()
    for number in added:
        assert found.add(number) == (number not in seen)
        seen.add(number)


def test_beyond_what_is_kept_the_lowest_numbers_are_forgotten_and_those_above_never() -> None:
    found = Numbers()
    squares = [number * number for number in range(4 * numbers.MOST_RUNS)]
    for square in squares:
        assert found.add(square)

    assert found.add(0)
    assert not any(found.add(square) for square in squares[-numbers.MOST_RUNS :])


def test_each_value_piece_and_event_is_told_once_and_those_of_others_beside_it() -> None:
    told = Told()
    assert steps_of(told.fresh(values(1, 2, 3))) == [1, 2, 3]
    assert steps_of(told.fresh(values(3, 4, 2))) == [4]
    assert steps_of(told.fresh(values(3, name="accuracy"))) == [3]
    assert steps_of(told.fresh(values(3, attempt=2))) == [3]
    assert told.fresh(pieces(0, 10)) is not None
    assert told.fresh(pieces(10)) is None
    assert told.fresh(pieces(10, rank=1)) is not None
    assert [told.fresh(event(number)) is not None for number in (5, 9, 5, 6)] == [True, True, False, True]


def test_a_long_run_takes_no_more_memory_than_a_short_one() -> None:
    def news() -> Iterator[MetricNews | LogNews | EventNews]:
        for number in range(REPORTS):
            yield values(10 * number)
            yield pieces(64 * number)
            yield event(3 * number)

    told = Told()
    tracemalloc.start()
    try:
        for each in news():
            assert told.fresh(each) is not None
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 100_000, "bytes"
