"""The simulation: what happens to the jobs of a stream, and that its figures are right."""

from itertools import count

import pytest

from jobs.planner.view import Quota
from jobs.simulation.fleet import make_fleet
from jobs.simulation.report import Planning, Waits, percentile, report
from jobs.simulation.run import Rules, Simulation, foretold_s
from jobs.simulation.synthetic import Size, make_stream
from tests.unit.simulation.streams import job, simulate

HAND_MADE = [job(0, 100, devices=2), job(10, 50), job(20, 30, priority=80)]
"""On two devices: the first has both until 100, then the others have one each."""


@pytest.mark.parametrize("seed", range(2))
def test_every_job_of_a_made_up_stream_runs_within_its_bound(seed: int) -> None:
    stream = make_stream(Size(200, 64, 8, load=1.2), seed=seed)
    simulation = simulate(stream, devices=64, rules=Rules(tick_s=60))
    found = report(simulation)
    assert (found.submitted, found.started, found.ended, found.waiting) == (200, 200, 200, 0)
    assert simulation.fleet.held == 0
    assert found.over_bound == 0
    assert found.longest_gang_wait is not None
    assert found.longest_gang_wait.wait_s <= found.longest_gang_wait.bound_s


def test_the_same_seed_gives_the_same_report() -> None:
    size = Size(100, 24, 8, load=1.1)
    first, again, other = (
        report(simulate(make_stream(size, seed=seed), devices=24, rules=Rules(tick_s=60))) for seed in (5, 5, 6)
    )
    assert first == again
    assert first != other


def test_waits_are_those_of_a_stream_worked_out_by_hand() -> None:
    found = report(simulate(HAND_MADE, devices=2))
    assert found.waits == Waits(jobs=3, mean_s=170 / 3, p50_s=80, p95_s=90, p99_s=90, longest_s=90)
    assert found.waits_by_gang == {"1": Waits(2, 85, 80, 90, 90, 90), "2 to 4": Waits(1, 0, 0, 0, 0, 0)}
    assert found.waits_by_priority == {
        "75 to 100": Waits(1, 80, 80, 80, 80, 80),
        "50 to 74": Waits(2, 45, 0, 90, 90, 90),
    }
    assert found.longest_gang_wait is not None
    assert (found.longest_gang_wait.job_id, found.longest_gang_wait.wait_s) == (1, 0)


def test_the_devices_time_is_that_of_a_stream_worked_out_by_hand() -> None:
    found = report(simulate(HAND_MADE, devices=2))
    assert found.simulated_s == 150
    assert found.busy == 280 / 300
    assert found.busy_while_blocked == 1
    assert found.most_blocked == 2
    assert found.planning == Planning(plans=4, mean_ms=1000, p95_ms=1000, worst_ms=1000)


def test_plans_are_a_tick_apart_and_see_what_happened_in_between() -> None:
    stream = [job(0, 100), job(1, 10, priority=20), job(2, 10, priority=80)]
    simulation = simulate(stream, devices=2, rules=Rules(tick_s=60))
    waits = {each.job_id: each.wait_s for each in simulation.tally.started}
    # The second and third come 1 and 2 s after a plan, so they are planned at 60: one device is free.
    assert waits == {1: 0, 3: 58, 2: 119}


def test_a_preempted_job_saves_goes_back_and_does_the_rest() -> None:
    stream = [job(0, 100, priority=20, preemptible=True), job(40, 10, priority=80)]
    simulation = simulate(stream, devices=1, rules=Rules(tick_s=1, stop_s=15))
    found = report(simulation)
    assert found.preemptions == 1
    assert found.ended == 2
    # Told to stop at 40, gone at 55; the other runs until 65; then the 60 s that are left.
    assert found.simulated_s == 125
    assert {each.job_id: each.wait_s for each in simulation.tally.started} == {1: 0, 2: 15}


def test_a_job_that_ends_while_it_is_told_to_stop_has_ended() -> None:
    stream = [job(0, 45, priority=20, preemptible=True), job(40, 10, priority=80)]
    found = report(simulate(stream, devices=1, rules=Rules(tick_s=1, stop_s=15)))
    assert (found.ended, found.simulated_s) == (2, 55)


def test_a_job_that_passes_one_with_devices_set_aside_is_counted_as_backfilled() -> None:
    # The second wants both devices, which come free at 100; the third is done by then.
    limited = job(20, 50, time_limit_s=60)
    stream = [job(0, 100, time_limit_s=100), job(10, 10, devices=2), limited]
    simulation = simulate(stream, devices=2)
    assert report(simulation).backfilled == 1
    assert {each.job_id: each.wait_s for each in simulation.tally.started} == {1: 0, 3: 0, 2: 90}


def test_a_job_that_no_host_can_run_is_named_with_its_reason() -> None:
    found = report(simulate([job(0, 10), job(5, 10, devices=4)], devices=2))
    assert (found.started, found.waiting) == (1, 1)
    assert "4 CUDA devices" in found.waiting_for[2]


def test_a_quota_holds() -> None:
    stream = [job(0, 10, user="ada"), job(0, 10, user="ada")]
    rules = Rules(tick_s=1, quotas=(Quota(("user", "*"), max_devices=1),))
    found = report(simulate(stream, devices=2, rules=rules))
    assert (found.waits.longest_s, found.ended) == (10, 2)


def test_an_interrupted_simulation_reports_what_there_is_so_far() -> None:
    plans = count()
    simulation = Simulation(HAND_MADE, make_fleet(2, devices_per_host=8), Rules(tick_s=1))
    simulation.run(goes_on=lambda: next(plans) < 3)
    found = report(simulation)
    assert (found.submitted, found.started, found.ended, found.waiting) == (3, 1, 0, 2)
    assert list(found.waiting_for) == [2, 3]
    assert found.simulated_s == 20


def test_what_is_left_is_foretold_by_the_pace_and_no_longer_than_the_limit() -> None:
    assert foretold_s(job(0, 100), 40) is None
    assert foretold_s(job(0, 100, foretold_s=110), 40) == pytest.approx(44)
    assert foretold_s(job(0, 100, time_limit_s=120), 40) == 60
    assert foretold_s(job(0, 100, time_limit_s=103, foretold_s=110), 40) == 43


@pytest.mark.parametrize(("share", "value"), [(0.5, 2), (0.75, 3), (0.76, 4), (1, 4)])
def test_a_percentile_is_the_smallest_value_that_so_many_do_not_exceed(share: float, value: float) -> None:
    assert percentile([1, 2, 3, 4], share) == value
