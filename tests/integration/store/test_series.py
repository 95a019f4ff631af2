"""Metric series as they are drawn: few points of many, which are the same whatever the rows and buckets behind them."""

import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from jobs.states import Outcome
from jobs.store import attempts, buckets, reports, series
from jobs.store.buckets import SPAN
from jobs.store.reports import MetricPoint
from jobs.tables import Metric, MetricBucket, Placement
from tests.integration.store.conftest import Service
from tests.integration.store.statements import executed

AT = datetime(2026, 5, 1, 12, 30, tzinfo=UTC)
FAR = 2**63 - 1


class Point(NamedTuple):
    """A value of a series: its step, the attempt that reported it, and the value, None where it is not finite."""

    step: int
    attempt: int
    value: float | None


class Run(NamedTuple):
    """What one attempt reports: a value every `stride` steps, and some that are not finite."""

    begin: int
    values: int
    stride: int
    gaps: bool
    seed: int


runs = st.lists(
    st.builds(
        Run,
        begin=st.integers(0, 400) | st.integers(0, 8000),
        values=st.integers(1, 40) | st.integers(1, 1500),
        stride=st.sampled_from([1, 1, 3, 10, 100]),
        gaps=st.booleans(),
        seed=st.integers(0, 9),
    ),
    min_size=1,
    max_size=3,
)
points = st.integers(2, 12) | st.integers(2, 400)
limits = st.none() | st.integers(0, 9000)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(runs=runs, points=points, from_step=limits, to_step=limits)
@example(runs=[Run(0, 1500, 1, True, 0), Run(700, 300, 1, False, 1)], points=40, from_step=None, to_step=None)
@example(runs=[Run(5, 1000, 1, False, 0)], points=20, from_step=70, to_step=900)
@example(runs=[Run(0, 300, 100, True, 3)], points=60, from_step=None, to_step=None)
def test_a_series_is_thinned_as_a_plain_loop_over_its_values_would(
    service: Service, runs: list[Run], points: int, from_step: int | None, to_step: int | None
) -> None:
    whole = report(service, runs)
    job_id = max(job_id for job_id, _ in whole)
    counted_on = kept_buckets(service, job_id)
    with service.database.session_scope() as session:
        buckets.refresh(session, job_id, [("loss", min(step for _, step in whole)), ("loss", FAR)])
    assert kept_buckets(service, job_id) == counted_on, "they are what they come to when they are worked out anew"
    begin, end = from_step or 0, FAR if to_step is None else to_step
    wanted = [point for (of, _), point in sorted(whole.items()) if of == job_id and begin <= point.step <= end]

    with service.database.session_scope(read_only=True) as session:
        rows = series.thinned(session, job_id, "loss", points=points, from_step=begin, to_step=to_step)

    found = [Point(row.step, row.attempt, row.value) for row in rows]
    assert found == thinned(wanted, points)
    assert len(found) <= points
    finite = [point.value for point in found if point.value is not None]
    everything = [point.value for point in wanted if point.value is not None]
    if points >= 5 and everything:
        assert (min(finite), max(finite)) == (min(everything), max(everything))


def report(service: Service, runs: Sequence[Run]) -> dict[tuple[int, int], Point]:
    """Report these runs as the attempts of one new job, and return its series by job and step."""
    service.register()  # all examples together take longer than a host may be silent
    placement = service.run()
    whole: dict[tuple[int, int], Point] = {}
    for number, run in enumerate(runs, start=1):
        if number > 1:
            placement = again(service, placement)
        told = list(values(run))
        whole |= {(placement.job_id, step): Point(step, number, value) for step, value in told}
        add(service, placement, told)
    service.end(placement, Outcome.SUCCEEDED)
    return whole


def kept_buckets(service: Service, job_id: int) -> list[tuple[object, ...]]:
    with service.database.session_scope(read_only=True) as session:
        rows = session.execute(select(MetricBucket.__table__).where(MetricBucket.job_id == job_id))
        return sorted(tuple(row) for row in rows)


def again(service: Service, placement: Placement) -> Placement:
    """Lose an attempt, and bring the next one to `running`."""
    service.end(placement, Outcome.LOST)
    (placement,) = service.plan()
    service.claim(placement)
    with service.database.session_scope() as session:
        attempts.set_running(session, placement, resumed_step=None)
    return placement


def values(run: Run) -> Iterator[tuple[int, float | None]]:
    draws = random.Random(run.seed)
    for step in range(run.begin, run.begin + run.values * run.stride, run.stride):
        # Of a few values, so that many are equal.
        yield step, None if run.gaps and draws.random() < 0.02 else draws.randint(-20, 20) / 8


def add(service: Service, placement: Placement, told: Sequence[tuple[int, float | None]], name: str = "loss") -> None:
    """Report values, in transactions as large as those of shipping."""
    for begin in range(0, len(told), 500):
        with service.database.session_scope() as session:
            piece = told[begin : begin + 500]
            reports.add_metrics(session, placement, [point(step, value, name) for step, value in piece])


def point(step: int, value: float | None, name: str = "loss") -> MetricPoint:
    return MetricPoint(name, step, 1, AT, value, "nan" if value is None else None)


def thinned(whole: Sequence[Point], points: int) -> list[Point]:
    """The model: what `series.thinned` promises, by loops over all values."""
    if len(whole) <= points:
        return list(whole)
    first, last = whole[0].step, whole[-1].step
    spans = last // SPAN - first // SPAN + 1
    unit = 1 if 4 * spans < points else SPAN
    kept = {whole[0], whole[-1]}
    stretches = (points - 2) // (3 if any(each.value is None for each in whole) else 2)
    if stretches == 0:
        return sorted(kept)
    units = 1
    while units * stretches < last // unit - first // unit + 1:
        units += 1
    begin = first // unit * unit
    while begin <= last:
        stretch = [each for each in whole if begin <= each.step < begin + units * unit]
        finite = [each for each in stretch if each.value is not None]
        kept.update(sorted(finite, key=lambda each: (each.value, each.step))[:1])
        kept.update(sorted(finite, key=lambda each: (-(each.value or 0), each.step))[:1])
        kept.update([each for each in stretch if each.value is None][:1])
        begin += units * unit
    return sorted(kept)


def summaries(service: Service, job_id: int) -> list[tuple[str, int, int, int, float | None]]:
    with service.database.session_scope(read_only=True) as session:
        found = series.summaries(session, job_id)
        return [(each.name, each.count, each.first_step, each.last.step, each.last.value) for each in found]


def test_a_summary_counts_each_step_once_over_all_attempts(service: Service) -> None:
    placement = service.run()
    add(service, placement, [(step, 1.0) for step in range(10, 300, 10)])
    add(service, placement, [(100, None)], name="точность")
    add(service, again(service, placement), [(step, 2.0) for step in range(200, 400, 10)])

    assert summaries(service, placement.job_id) == [("loss", 39, 10, 390, 2.0), ("точность", 1, 100, 100, None)]


def test_a_job_with_no_metrics_has_no_summaries(service: Service) -> None:
    assert summaries(service, service.run().job_id) == []


def test_a_report_that_is_told_again_leaves_the_buckets_as_they_were(service: Service) -> None:
    placement = service.run()
    told = [(step, float(step % 7)) for step in range(200)]
    add(service, placement, told)
    before = service.everything()

    add(service, placement, told)
    add(service, placement, told[30:90])

    assert service.everything() == before


def test_values_that_come_after_all_others_are_counted_on_without_reading_any(service: Service) -> None:
    placement = service.run()
    add(service, placement, [(step, 1.0) for step in range(100)])

    with executed(service.database) as statements:
        add(service, placement, [(step, 2.0) for step in range(100, 200)])
        added = len(statements)
        add(service, placement, [(step, 2.0) for step in range(150, 250)])

    reading = ["row_number" in statement for statement in statements]
    assert not any(reading[:added])
    assert any(reading[added:]), "some of them were there already"
    ((_, count, first, last, _),) = summaries(service, placement.job_id)
    assert (count, first, last) == (250, 0, 249)


def test_one_step_told_twice_in_one_report_is_counted_once(service: Service) -> None:
    placement = service.run()
    add(service, placement, [(1, 1.0), (2, 2.0), (2, 3.0)])

    assert summaries(service, placement.job_id) == [("loss", 2, 1, 2, 2.0)]


@pytest.mark.parametrize(
    "steps",
    [[5, 1000, 5, 1000, 6], [FAR, 0], list(range(100, 0, -1)), [3, 3, 3]],
    ids=["two series of steps in turns", "the last step that there can be", "backwards", "one step alone"],
)
def test_steps_in_any_order_are_in_their_buckets(service: Service, steps: list[int]) -> None:
    placement = service.run()
    add(service, placement, [(step, 1.0) for step in steps])

    with service.database.session_scope(read_only=True) as session:
        found = session.execute(select(MetricBucket.bucket, MetricBucket.count).order_by(MetricBucket.bucket)).all()
    counts: dict[int, int] = {}
    for step in sorted(set(steps)):
        counts[step // SPAN] = counts.get(step // SPAN, 0) + 1
    assert [tuple(row) for row in found] == sorted(counts.items())


def test_names_that_are_too_long_are_cut_and_stay_apart(service: Service) -> None:
    placement = service.run()
    add(service, placement, [(1, 1.0)], name="n" * 300 + "a")
    add(service, placement, [(1, 2.0)], name="n" * 300 + "b")
    add(service, placement, [(1, 3.0)], name="n" * 255)

    with service.database.session_scope(read_only=True) as session:
        names = session.scalars(select(Metric.name)).all()
    assert {len(name) for name in names} == {255}
    assert len(set(names)) == 3


def test_an_export_goes_through_a_series_by_pieces(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(series, "PIECE_ROWS", 7)
    placement = service.run()
    for name in ("a", "b"):
        add(service, placement, [(step, None if step == 4 else 0.5) for step in range(10)], name=name)

    seen: list[tuple[str, int]] = []
    with service.database.session_scope(read_only=True) as session:
        while True:
            query = series.select_piece(
                placement.job_id, names=[], from_step=2, to_step=8, after=seen[-1] if seen else None
            )
            rows = session.execute(query).all()
            if not rows:
                break
            seen += [(row.name, row.step) for row in rows]
    assert seen == [(name, step) for name in ("a", "b") for step in range(2, 9)]
