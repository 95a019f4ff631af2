"""Whose run is stopped for whom."""

from typing import Any

import pytest

from jobs.planner.plan import plan
from jobs.planner.view import Policy, Preempt, Reservation, RunningJob, WaitingJob
from tests.unit.planner.drawing import NOW, ask, host, job, preempted, reasons, run, scene, started, starts, waits

PATIENCE_S = Policy().patience_s


def low(number: int, *device_ids: int, **fields: Any) -> RunningJob:
    return run(number, *device_ids, **({"priority": 10, "preemptible": True, "saved_at": NOW - 100} | fields))


def urgent(number: int = 1, wants: Any = 1, **fields: Any) -> WaitingJob:
    return job(number, wants, **({"priority": 90} | fields))


def stopped(*running: RunningJob, waiting: WaitingJob | None = None, cuda: int = 2) -> set[int]:
    return set(preempted(plan(scene(host(cuda=cuda), [waiting or urgent()], running))))


def test_a_job_of_higher_priority_has_a_preemptible_one_stopped() -> None:
    decisions = plan(scene(host(cuda=1), [urgent()], [low(9, 1)]))

    assert decisions[0] == Preempt(9, 1, for_job=1)
    assert waits(decisions)[1].reservation == Reservation((1,), NOW, preempts=True)
    assert waits(decisions)[1].reason == "waits for cuda:0 (job 9, which is stopped for it) on alpha"


def test_of_who_is_stopped_in_this_plan_only_is_said_for_whom() -> None:
    waiting = [urgent(1), job(2, 1)]
    told = reasons(plan(scene(host(cuda=1), waiting, [low(9, 1)])))
    supposed = reasons(plan(scene(host(cuda=1), [urgent(1, is_supposed=True)], [low(9, 1)])))

    assert told[2].startswith("waits for cuda:0 (job 9, which is stopped for job 1) on alpha")
    assert supposed == {1: "waits for cuda:0 (job 9, which would be stopped for it) on alpha"}


@pytest.mark.parametrize(
    "spared",
    [{"preemptible": False}, {"priority": 90}, {"priority": 95}, {"is_stopping": True}],
    ids=["did not opt in", "same priority", "higher priority", "stopping already"],
)
def test_nobody_else_is_stopped(spared: dict[str, Any]) -> None:
    assert stopped(low(9, 1, **spared), cuda=1) == set()


def test_the_waiting_jobs_own_priority_counts_and_not_how_long_it_has_waited() -> None:
    assert stopped(low(9, 1), waiting=job(1, 1, priority=10, waits_from=0), cuda=1) == set()


def test_nobody_is_stopped_while_something_is_free() -> None:
    assert stopped(low(9, 1)) == set()
    assert started(host(), [urgent()], [low(9, 1)]) == {1}


@pytest.mark.parametrize(
    ("end", "victims"),
    [(PATIENCE_S, set()), (PATIENCE_S + 1, {9}), (None, {9})],
    ids=["soon", "later", "unknown"],
)
def test_nobody_is_stopped_for_a_job_that_is_foretold_to_start_soon_anyhow(
    end: float | None, victims: set[int]
) -> None:
    assert stopped(low(9, 1), run(8, 2, predicted_end=end and NOW + end)) == victims


def test_a_job_that_has_waited_for_its_reservation_has_others_stopped_only_if_that_is_not_to_come_soon() -> None:
    waiting = urgent(wants="cuda:0", reservation=Reservation((1,), NOW - 60))

    assert stopped(low(9, 1, predicted_end=NOW + PATIENCE_S), waiting=waiting) == set()
    assert stopped(low(9, 1, predicted_end=NOW + PATIENCE_S + 1), waiting=waiting) == {9}


def test_nobody_is_stopped_in_vain() -> None:
    assert stopped(low(8, 1), run(9, 2), waiting=urgent(wants=2)) == set()


def test_the_lowest_priority_is_stopped_first() -> None:
    assert stopped(low(8, 1, priority=20, saved_at=NOW), low(9, 2)) == {9}


def test_of_equal_priorities_the_one_that_loses_least_is_stopped() -> None:
    assert stopped(low(8, 1, saved_at=NOW - 5), low(9, 2, saved_at=NOW - 50)) == {8}


def test_of_equal_ones_the_newest_is_stopped() -> None:
    assert stopped(low(8, 1), low(9, 2)) == {9}


def test_as_many_are_stopped_as_are_needed_and_no_more() -> None:
    running = [low(7, 1, priority=5), low(8, 2, 3, priority=10), low(9, 4, priority=20)]

    assert stopped(*running, waiting=urgent(wants=1), cuda=4) == {7}
    assert stopped(*running, waiting=urgent(wants=2), cuda=4) == {8}, "that of job 7 would not be enough and is spared"
    assert stopped(*running, waiting=urgent(wants=4), cuda=4) == {7, 8, 9}


def test_a_gang_on_two_hosts_has_those_in_its_way_stopped_on_both() -> None:
    hosts = [host("alpha"), host("beta", first_id=11), host("gamma", first_id=21)]
    running = [low(7, 1), low(8, 11), run(9, 21, 22)]
    decisions = plan(scene(hosts, [urgent(wants=ask(2, nodes=2))], running))

    assert preempted(decisions) == {7: 1, 8: 1}
    assert waits(decisions)[1].reservation == Reservation((1, 2, 11, 12), NOW, preempts=True)


def test_free_hosts_are_used_before_others_are_cleared() -> None:
    hosts = [host("alpha"), host("beta", first_id=11), host("gamma", first_id=21)]
    running = [low(7, 1), low(8, 11, priority=20)]

    assert preempted(plan(scene(hosts, [urgent(wants=ask(2, nodes=2))], running))) == {7: 1}


def test_only_those_on_the_devices_of_a_list_are_stopped() -> None:
    assert stopped(low(8, 1, priority=20), low(9, 2), waiting=urgent(wants="cuda:0")) == {8}


def test_only_those_on_hosts_that_the_job_may_use_are_stopped() -> None:
    hosts = [host("alpha", cuda=1), host("beta", cuda=1, first_id=11), host("gamma", cuda=1, first_id=21)]
    running = [low(7, 1), low(8, 11, priority=20), low(9, 21, priority=30)]

    assert preempted(plan(scene(hosts, [urgent(wants=ask(1, host="gamma"))], running))) == {9: 1}
    assert preempted(plan(scene(hosts, [urgent(resumes_on=frozenset({"beta", "gamma"}))], running))) == {8: 1}


def test_devices_of_a_job_that_stops_already_are_waited_for_and_nobody_else_is_stopped() -> None:
    decisions = plan(scene(host(), [urgent()], [low(8, 1, is_stopping=True), low(9, 2)]))

    assert preempted(decisions) == {}
    assert waits(decisions)[1].reservation == Reservation((1,), NOW)


def test_what_a_stopped_job_leaves_over_serves_the_next_one_too() -> None:
    decisions = plan(scene(host(), [urgent(1), urgent(2)], [low(9, 1, 2)]))

    assert preempted(decisions) == {9: 1}
    assert waits(decisions)[2].reservation == Reservation((2,), NOW)


def test_while_they_stop_nobody_else_is_stopped_for_the_same_job() -> None:
    waiting = urgent(wants=2, reservation=Reservation((1, 2), NOW - 1, preempts=True))
    running = [low(7, 1, is_stopping=True), low(9, 3, 4)]
    decisions = plan(scene(host(cuda=4), [waiting], running))

    assert preempted(decisions) == {}
    assert waits(decisions)[1].reservation == Reservation((1, 2), NOW - 1, preempts=True)


def test_the_stopped_job_does_not_take_its_devices_back() -> None:
    waiting = [
        urgent(1, reservation=Reservation((1,), NOW - 1, preempts=True)),
        job(9, 1, priority=10, waits_from=0),
        urgent(10, priority=100, waits_from=NOW - 1e6),
    ]

    assert starts(plan(scene(host(cuda=1), waiting))) == {1: [("alpha", ["cuda:0"])]}


def test_several_have_others_stopped_for_them_at_once() -> None:
    decisions = plan(scene(host(), [urgent(1), urgent(2), urgent(3)], [low(8, 1), low(9, 2)]))

    assert preempted(decisions) == {9: 1, 8: 2}


def test_what_is_set_aside_for_the_first_in_the_line_is_kept_while_others_stop_for_one_before_it() -> None:
    gang = job(2, 2, reservation=Reservation((2, 3), NOW + 900))
    waiting = [urgent(1, "cuda:0", reservation=Reservation((1,), NOW - 1, preempts=True)), gang, job(3, 1)]
    running = [low(8, 1, is_stopping=True), run(9, 3, predicted_end=NOW + 900)]
    decisions = plan(scene(host(cuda=3), waiting, running))

    assert starts(decisions) == {}
    assert [waits(decisions)[number].reservation for number in (1, 2, 3)] == [
        Reservation((1,), NOW - 1, preempts=True),
        Reservation((2, 3), NOW + 900),
        None,
    ]


def test_nobody_is_stopped_on_devices_that_a_job_further_ahead_waits_for() -> None:
    """It has waited so long that its turn comes first, although its priority is too low to have anybody stopped."""
    aged = job(1, 2, priority=10, waits_from=NOW - 1e6)

    assert preempted(plan(scene(host(), [aged, urgent(2)], [low(8, 1), low(9, 2)]))) == {}


def test_a_job_that_was_given_others_devices_is_not_itself_overtaken_by_them() -> None:
    """A higher priority still may not clear what is being cleared for somebody else."""
    waiting = [
        urgent(1, reservation=Reservation((1,), NOW - 1, preempts=True)),
        urgent(2, priority=100, waits_from=0),
    ]
    decisions = plan(scene(host(cuda=1), waiting, [low(9, 1, is_stopping=True)]))

    assert preempted(decisions) == {}
    assert waits(decisions)[2].reason == (
        "waits for cuda:0 (job 9, which is stopping, then job 1) on alpha; how long job 1 runs is not known"
    )
