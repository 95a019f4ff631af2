"""What is set aside for jobs that can not start yet, and who may use it meanwhile."""

from dataclasses import replace

import pytest

from jobs.planner.bounds import longest_wait_s
from jobs.planner.plan import MOST_FORESEEN, plan
from jobs.planner.view import Policy, Reservation, Scene, Start, WaitingJob
from tests.unit.planner.drawing import NOW, ask, host, job, run, scene, started, starts, waits


def reservation(made: Scene, number: int) -> Reservation:
    found = waits(plan(made))[number].reservation
    assert found is not None
    return found


def test_the_devices_a_job_waits_for_are_set_aside_for_it() -> None:
    made = scene(host(), [job(1, "cuda:0,cuda:1"), job(2, "cuda:0")], [run(9, 2)])

    assert starts(plan(made)) == {}
    assert reservation(made, 1) == Reservation((1, 2), None)


def test_a_later_job_that_wants_other_devices_passes_one_that_waits() -> None:
    assert started(host(cuda=3), [job(1, "cuda:0,cuda:1"), job(2, "cuda:2")], [run(9, 2)]) == {2}


@pytest.mark.parametrize(("duration_s", "passes"), [(60.0, True), (60.1, False), (None, False)])
def test_a_later_job_uses_what_is_set_aside_only_if_it_ends_before_it_is_needed(
    duration_s: float | None, passes: bool
) -> None:
    waiting = [job(1, "cuda:0,cuda:1"), job(2, 1, duration_s=duration_s)]

    assert (2 in started(host(), waiting, [run(9, 2, predicted_end=NOW + 60)])) is passes


def test_a_short_job_passes_although_a_longer_one_that_asks_for_the_same_could_not() -> None:
    waiting = [job(1, "cuda:0,cuda:1"), job(2, 1), job(3, 1, duration_s=90), job(4, 1, duration_s=60)]

    assert started(host(), waiting, [run(9, 2, predicted_end=NOW + 60)]) == {4}


def test_what_a_job_has_that_is_told_to_stop_comes_free_at_any_moment_however_long_it_was_to_train_yet() -> None:
    made = scene(host(), [job(1, "cuda:0,cuda:1")], [run(9, 2, predicted_end=NOW + 9000, is_stopping=True)])

    assert reservation(made, 1) == Reservation((1, 2), NOW)


@pytest.mark.parametrize("end", [None, NOW - 5], ids=["unknown", "overdue"])
def test_nobody_passes_a_job_that_waits_for_one_whose_end_can_not_be_foretold(end: float | None) -> None:
    waiting = [job(1, "cuda:0,cuda:1"), job(2, 1, duration_s=0.1)]

    assert started(host(), waiting, [run(9, 2, predicted_end=end)]) == set()


def test_a_job_fills_gaps_on_several_hosts_at_once() -> None:
    hosts = [host("alpha"), host("beta", first_id=11), host("gamma", first_id=21)]
    running = [run(9, 2, predicted_end=NOW + 60), run(8, 12, predicted_end=NOW + 60), run(7, 22)]
    waiting = [
        job(1, ask("cuda:0,cuda:1", host="alpha")),
        job(2, ask("cuda:0,cuda:1", host="beta")),
        job(3, ask(1, nodes=3), duration_s=30),
    ]

    assert starts(plan(scene(hosts, waiting, running))) == {
        3: [("alpha", ["cuda:0"]), ("beta", ["cuda:0"]), ("gamma", ["cuda:0"])]
    }


def test_free_devices_are_used_before_those_that_are_lent() -> None:
    hosts = [host("alpha"), host("beta", first_id=11)]
    waiting = [job(1, ask("cuda:0,cuda:1", host="alpha")), job(2, 1, duration_s=1)]
    made = scene(hosts, waiting, [run(9, 2, predicted_end=NOW + 60)])

    assert starts(plan(made)) == {2: [("beta", ["cuda:0"])]}


def test_a_reservation_starts_when_the_last_of_its_devices_is_expected() -> None:
    running = [run(8, 1, predicted_end=NOW + 30), run(9, 2, predicted_end=NOW + 60)]

    assert reservation(scene(host(), [job(1, 2)], running), 1) == Reservation((1, 2), NOW + 60)


def test_the_second_in_the_line_for_some_devices_is_foretold_to_start_after_the_first() -> None:
    waiting = [job(1, 2, duration_s=100), job(2, 2, duration_s=10), job(3, 2)]
    told = waits(plan(scene(host(), waiting, [run(9, 1, 2, predicted_end=NOW + 60)])))

    assert [told[number].predicted_start for number in (1, 2, 3)] == [NOW + 60, NOW + 160, NOW + 170]


def test_a_job_waits_where_its_devices_are_expected_first() -> None:
    hosts = [host("alpha"), host("beta", first_id=11), host("gamma", first_id=21)]
    running = [
        run(7, 1, 2, predicted_end=NOW + 90),
        run(8, 11, 12, predicted_end=NOW + 30),
        run(9, 21, 22),
    ]

    assert reservation(scene(hosts, [job(1, 2)], running), 1).device_ids == (11, 12)


def test_where_nothing_can_be_foretold_a_job_waits_where_the_most_is_free() -> None:
    hosts = [host("alpha", cuda=3), host("beta", cuda=3, first_id=11)]
    running = [run(7, 1), run(8, 2), run(9, 11)]

    assert reservation(scene(hosts, [job(1, 3)], running), 1).device_ids == (11, 12, 13)


def test_devices_are_set_aside_only_for_who_is_first_in_the_line_for_them() -> None:
    hosts = [host("alpha"), host("beta", first_id=11)]
    told = waits(plan(scene(hosts, [job(1, 2), job(2, 2), job(3, 1)], [run(8, 1, 2), run(9, 11, 12)])))

    assert [each.reservation and each.reservation.device_ids for each in told.values()] == [(1, 2), None, None]


def test_a_gang_is_not_passed_on_its_host_while_the_first_in_the_line_waits_for_another() -> None:
    hosts = [host("alpha"), host("beta", first_id=11)]
    waiting = [
        job(1, ask("cuda:0,cuda:1", host="alpha")),
        job(2, ask(2, host="beta")),
        job(3, ask(1, host="beta")),
    ]
    told = plan(scene(hosts, waiting, [run(8, 1), run(9, 11)]))

    assert starts(told) == {}
    assert {number: each.reservation for number, each in waits(told).items()} == {
        1: Reservation((1, 2), None),
        2: Reservation((11, 12), None),
        3: None,
    }


def test_one_who_may_use_a_single_device_of_those_before_it_is_not_first() -> None:
    """Nor does it come before those after it, which are first for devices that only it could use as well."""
    waiting = [job(1, "cuda:0,cuda:1"), job(2, "cuda:1,cuda:2"), job(3, "cuda:2,cuda:3")]
    told = waits(plan(scene(host(cuda=4), waiting, [run(9, 1, 4)])))

    assert [each.reservation and each.reservation.device_ids for each in told.values()] == [(1, 2), None, (3, 4)]


def test_hosts_too_small_for_a_job_are_not_among_what_it_may_use() -> None:
    hosts = [host("alpha"), host("beta", cuda=1, first_id=11)]
    waiting = [job(1, 2), job(2, ask("cuda:0", host="beta"))]

    assert waits(plan(scene(hosts, waiting, [run(8, 1), run(9, 11)])))[2].reservation == Reservation((11,), None)


def test_a_reservation_is_dropped_once_somebody_comes_before_the_job() -> None:
    waiting = [job(2, 2, reservation=Reservation((1, 2), NOW + 60)), job(1, 2)]
    told = waits(plan(scene(host(), waiting, [run(9, 2, predicted_end=NOW + 60)])))

    assert [told[number].reservation for number in (1, 2)] == [Reservation((1, 2), NOW + 60), None]


def test_one_who_is_first_for_its_devices_has_them_set_aside_however_many_wait_for_others() -> None:
    hosts = [host("alpha", cuda=1), host("beta", first_id=11)]
    crowd = [job(number, ask(1, host="alpha")) for number in range(1, MOST_FORESEEN + 2)]
    gang = job(500, ask(2, host="beta"))

    assert reservation(scene(hosts, [*crowd, gang], [run(8, 1), run(9, 12)]), 500) == Reservation((11, 12), None)


def test_a_reservation_is_kept_although_other_devices_would_be_as_good() -> None:
    hosts = [host("alpha"), host("beta", first_id=11)]
    running = [run(8, 1, predicted_end=NOW + 60), run(9, 11, predicted_end=NOW + 59)]
    kept = job(1, 2, reservation=Reservation((1, 2), NOW + 60))

    assert reservation(scene(hosts, [kept], running), 1) == Reservation((1, 2), NOW + 60)


def test_a_job_moves_to_devices_that_are_expected_much_sooner() -> None:
    hosts = [host("alpha"), host("beta", first_id=11)]
    running = [run(8, 1), run(9, 11, predicted_end=NOW + 10)]
    kept = job(1, 2, reservation=Reservation((1, 2), NOW + 60))

    assert reservation(scene(hosts, [kept], running), 1) == Reservation((11, 12), NOW + 10)


def test_a_job_moves_no_more_once_the_time_has_come_that_was_foretold() -> None:
    hosts = [host("alpha"), host("beta", first_id=11)]
    running = [run(8, 1), run(9, 11, predicted_end=NOW + 10)]
    kept = job(1, 2, reservation=Reservation((1, 2), NOW - 1))

    assert reservation(scene(hosts, [kept], running), 1) == Reservation((1, 2), NOW - 1)


@pytest.mark.parametrize(
    ("before", "end", "after"),
    [
        (NOW + 60, NOW + 90, NOW + 60),
        (NOW + 60, NOW + 30, NOW + 30),
        (NOW + 60, None, NOW + 60),
        (None, NOW + 30, NOW + 30),
        (None, None, None),
    ],
)
def test_the_start_of_a_reservation_only_comes_earlier(
    before: float | None, end: float | None, after: float | None
) -> None:
    kept = job(1, 2, reservation=Reservation((1, 2), before))

    assert reservation(scene(host(), [kept], [run(9, 1, predicted_end=end)]), 1).start == after


def test_what_the_job_is_told_follows_the_forecast_also_when_that_gets_later() -> None:
    kept = job(1, 2, reservation=Reservation((1, 2), NOW + 60))

    assert waits(plan(scene(host(), [kept], [run(9, 1, predicted_end=NOW + 90)])))[1].predicted_start == NOW + 90


def test_a_job_starts_elsewhere_as_soon_as_it_can() -> None:
    hosts = [host("alpha"), host("beta", first_id=11)]
    kept = job(1, 2, reservation=Reservation((1, 2), NOW + 60))

    assert starts(plan(scene(hosts, [kept], [run(9, 1)])))[1][0][0] == "beta"


def test_a_job_starts_on_what_was_set_aside_for_it_when_that_is_free() -> None:
    hosts = [host("alpha", cuda=4), host("beta", first_id=11)]
    kept = job(1, 2, reservation=Reservation((2, 4), NOW))

    assert starts(plan(scene(hosts, [kept])))[1] == [("alpha", ["cuda:1", "cuda:3"])]


@pytest.mark.parametrize(
    "devices",
    [(1, 2, 3), (1,), (1, 1), (1, 11), (3, 4), (98, 99)],
    ids=["too many", "too few", "one twice", "two hosts", "other kind", "gone"],
)
def test_a_reservation_that_serves_the_job_no_more_is_replaced(devices: tuple[int, ...]) -> None:
    hosts = [host("alpha", cuda=2, cpu=2), host("beta", cuda=1, first_id=11)]
    kept = job(1, 2, reservation=Reservation(devices, NOW + 60))

    assert reservation(scene(hosts, [kept], [run(9, 2)]), 1) == Reservation((1, 2), None)


def test_a_reservation_on_a_host_that_was_closed_is_made_anew_on_another() -> None:
    hosts = [host("alpha", closed="drained"), host("beta", first_id=11)]
    kept = job(1, 2, reservation=Reservation((1, 2), NOW + 5))

    assert reservation(scene(hosts, [kept], [run(9, 11)]), 1) == Reservation((11, 12), None)


def test_no_more_jobs_than_the_policy_says_have_devices_set_aside() -> None:
    waiting = [job(1, "cuda:0"), job(2, "cuda:1,cuda:2"), job(3, "cuda:2")]
    made = scene(host(cuda=3), waiting, [run(9, 1, 2)], policy=Policy(reservations=1))

    assert starts(plan(made)) == {3: [("alpha", ["cuda:2"])]}
    assert waits(plan(made))[2].reservation is None


@pytest.mark.parametrize(
    ("closed", "kept"),
    [(("out of contact", None), True), (("out of contact", "out of contact"), True), (("drained", None), False)],
    ids=["one out of contact", "both out of contact", "one drained"],
)
def test_what_was_gathered_or_cleared_outlives_a_missed_heartbeat_and_is_nobody_elses_trouble_meanwhile(
    closed: tuple[str, str | None], *, kept: bool
) -> None:
    before = Reservation((1, 11), NOW + 100, preempts=True)
    hosts = [host("alpha", cuda=1, closed=closed[0]), host("beta", cuda=1, first_id=11, closed=closed[1])]
    gang = job(1, ask(1, nodes=2), reservation=before)
    made = scene(hosts, [gang, job(2, 1)])
    back = scene([host("alpha", cuda=1), host("beta", cuda=1, first_id=11)], [gang, job(2, 1)])

    assert waits(plan(made))[1].reservation == (before if kept else None)
    assert set(starts(plan(made))) == ({2} if closed[1] is None else set())
    assert set(starts(plan(back))) == {1}


def test_nothing_is_set_aside_on_hosts_that_are_closed() -> None:
    hosts = [host("alpha", closed="out of contact"), host("beta", first_id=11)]
    told = plan(scene(hosts, [job(1, ask("cuda:0,cuda:1", host="alpha")), job(2, "cuda:0")]))

    assert starts(told) == {2: [("beta", ["cuda:0"])]}
    assert waits(told)[1].reservation is None


def test_nothing_is_set_aside_for_a_job_that_rests() -> None:
    waiting = [job(1, 2, not_before=NOW + 60), job(2, 1)]

    assert started(host(), waiting) == {2}


def test_jobs_that_have_nothing_set_aside_are_still_told_when_they_may_start() -> None:
    waiting = [job(number, 2, duration_s=10) for number in range(1, 4)]
    running = [run(9, 1, 2, predicted_end=NOW + 60)]
    told = waits(plan(scene(host(), waiting, running)))

    assert [each.predicted_start for each in told.values()] == [NOW + 60, NOW + 70, NOW + 80]


def test_a_gang_starts_within_the_bound_however_many_small_jobs_keep_coming() -> None:
    """Two new small jobs a second want what the gang waits for, and each lasts three times as long as it says."""
    policy = Policy(ageing_s=1, fair_share_s=0)
    bound_s = longest_wait_s(80, policy, ahead=0, foretold_s=3, run_s=9)
    gang = job(1, 4, priority=80, waits_from=NOW)
    waiting: dict[int, WaitingJob] = {1: gang}
    running = {number: run(number, number - 899, predicted_end=NOW + 3) for number in range(900, 904)}
    ends = {number: NOW + number - 899 for number in running}
    small = 2
    for second in range(int(bound_s) + 1):
        now = NOW + second
        waiting |= {number: job(number, 1, waits_from=now, duration_s=3.0) for number in (small, small + 1)}
        small += 2
        running = {number: each for number, each in running.items() if ends[number] > now}
        for each in plan(scene(host(cuda=4), list(waiting.values()), list(running.values()), now=now, policy=policy)):
            if isinstance(each, Start):
                if each.job_id == 1:
                    return
                del waiting[each.job_id]
                devices = [device.id for node in each.nodes for device in node.devices]
                running[each.job_id] = run(each.job_id, *devices, predicted_end=now + 3)
                ends[each.job_id] = now + 9
            elif each.job_id in waiting:
                waiting[each.job_id] = replace(waiting[each.job_id], reservation=waits([each])[each.job_id].reservation)
    raise AssertionError(f"the gang did not start within {bound_s} s")


def test_a_start_that_lies_ten_years_ahead_is_not_foretold_and_the_line_behind_it_is_planned_all_the_same() -> None:
    year_s = 365 * 86_400.0
    waiting = [job(number, "cuda:0", duration_s=4 * year_s) for number in range(1, 30)]
    decisions = waits(plan(scene(host(), waiting, [run(99, 1, predicted_end=NOW + year_s)])))

    foretold = {number: each.predicted_start for number, each in decisions.items()}
    assert [foretold[number] for number in (1, 2, 3, 4, 29)] == [
        NOW + year_s,
        NOW + 5 * year_s,
        NOW + 9 * year_s,
        None,
        None,
    ]


def test_a_reservation_whose_devices_come_free_in_a_thousand_years_has_no_start() -> None:
    made = scene(host(), [job(1, "cuda:0,cuda:1")], [run(9, 2, predicted_end=NOW + 1000 * 365 * 86_400)])

    assert reservation(made, 1) == Reservation((1, 2), None)
