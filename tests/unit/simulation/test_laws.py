"""The laws of planning: a plan that breaks one is caught, whatever planner made it."""

from dataclasses import replace

import pytest

from jobs.device_count import DeviceCount
from jobs.planner.request import Request
from jobs.planner.view import (
    Account,
    Decision,
    Node,
    Preempt,
    Quota,
    Reservation,
    RunningJob,
    Scene,
    Start,
    Wait,
    WaitingJob,
)
from jobs.simulation.fleet import BrokenPlanError, Fleet, make_fleet
from jobs.simulation.laws import check_plan

HOSTS = make_fleet(16, devices_per_host=8)
FIRST, SECOND = HOSTS
ONE = Request(device=DeviceCount(count=1), per_node=1)
PAIR = Request(device=DeviceCount(count=1), per_node=1, nodes=2)
LARGE = Request(device=DeviceCount(count=1, min_memory_gb=100), per_node=1)


def node(host: int, *devices: int) -> Node:
    return Node(HOSTS[host].name, tuple(HOSTS[host].devices[each] for each in devices))


def waiting(job_id: int, *, duration_s: float | None = None, reservation: Reservation | None = None) -> WaitingJob:
    return WaitingJob(job_id, 50, 0.0, ONE, duration_s=duration_s, reservation=reservation)


def scene(*jobs: WaitingJob, running: tuple[RunningJob, ...] = ()) -> Scene:
    return Scene(now=100.0, waiting=jobs, running=running, hosts=HOSTS)


def wait(job_id: int, reservation: Reservation | None = None) -> Wait:
    return Wait(job_id, "waits", float(job_id), reservation=reservation)


def test_a_device_is_not_handed_out_twice() -> None:
    fleet = Fleet(HOSTS)
    fleet.take(1, ONE, [node(0, 3)])
    with pytest.raises(BrokenPlanError, match="job 2 gets cuda:3 of host-1, which job 1 has: overbooked"):
        fleet.take(2, ONE, [node(0, 3)])
    fleet.release([4])
    assert fleet.take(2, ONE, [node(0, 3)]) == (4,)


@pytest.mark.parametrize(
    ("request_", "nodes", "said"),
    [
        (PAIR, [node(0, 0)], "a split gang"),
        (PAIR, [node(0, 0), node(0, 1)], "a split gang"),
        (ONE, [node(0, 0, 1)], "wants 1 devices on host-1, gets 2"),
        (ONE, [Node("host-2", FIRST.devices[:1])], "host-2, which has no such device"),
        (ONE.model_copy(update={"host": "host-2"}), [node(0, 0)], "is to run on host-2"),
        (LARGE, [node(0, 0)], "not what it asks for"),
        (Request(device="cuda:1", per_node=1), [node(0, 0)], "not what it asks for"),
    ],
)
def test_a_job_gets_what_it_asks_for_or_nothing(request_: Request, nodes: list[Node], said: str) -> None:
    fleet = Fleet(HOSTS)
    with pytest.raises(BrokenPlanError, match=said):
        fleet.take(1, request_, nodes)


@pytest.mark.parametrize(
    ("decisions", "said"),
    [([wait(1)], "job 2 is not decided upon"), ([wait(1), wait(2), wait(1)], "job 1 is decided upon twice")],
)
def test_each_waiting_job_is_decided_upon_once(decisions: list[Decision], said: str) -> None:
    with pytest.raises(BrokenPlanError, match=said):
        check_plan(scene(waiting(1), waiting(2)), decisions)


@pytest.mark.parametrize(("duration_s", "start"), [(51.0, 150.0), (None, 150.0), (1.0, None)])
def test_who_comes_later_delays_no_reservation(duration_s: float | None, start: float | None) -> None:
    set_aside = Reservation(device_ids=(1, 2), start=start)
    with pytest.raises(BrokenPlanError, match=r"job 2 starts at 100\.0"):
        check_plan(scene(waiting(1), waiting(2, duration_s=duration_s)), [wait(1, set_aside), Start(2, (node(0, 1),))])


def test_who_is_done_in_time_or_elsewhere_may_pass_and_is_counted() -> None:
    set_aside = Reservation(device_ids=(1, 2), start=150.0)
    jobs = (waiting(1), waiting(2, duration_s=50.0), waiting(3), waiting(4))
    decisions: list[Decision] = [
        Start(4, (node(0, 7),)),
        wait(1, set_aside),
        Start(2, (node(0, 1),)),
        Start(3, (node(0, 5),)),
    ]
    assert check_plan(scene(*jobs), decisions) == 2


def test_a_gap_before_one_reservation_is_filled_though_the_start_of_the_next_is_not_known() -> None:
    known, unknown = Reservation((1,), start=150.0), Reservation((1, 2))
    jobs = (waiting(1), waiting(2), waiting(3, duration_s=50.0))
    assert check_plan(scene(*jobs), [wait(1, known), wait(2, unknown), Start(3, (node(0, 0),))]) == 1
    with pytest.raises(BrokenPlanError, match="job 3 starts"):
        check_plan(scene(*jobs), [wait(1, known), wait(2, unknown), Start(3, (node(0, 1),))])


def test_a_reservation_is_not_put_off() -> None:
    before, after = Reservation((1,), start=150.0), Reservation((1,), start=151.0)
    with pytest.raises(BrokenPlanError, match=r"from 150\.0 on, now put off to 151\.0"):
        check_plan(scene(waiting(1, reservation=before)), [wait(1, after)])


@pytest.mark.parametrize("account", [("user", "ada"), ("user", "*"), ("label", "team=vision")])
def test_nobody_starts_beyond_a_quota(account: Account) -> None:
    mine = replace(waiting(1), user="ada", labels={"team": "vision"})
    running = RunningJob(9, 1, 50, (9, 10), user="ada", labels={"team": "vision"})
    wide, narrow = (
        replace(scene(mine, running=(running,)), quotas=(Quota(account, max_devices=most),)) for most in (3, 2)
    )
    decisions = [Start(1, (node(0, 0),))]
    assert check_plan(wide, decisions) == 0
    with pytest.raises(BrokenPlanError, match="job 1 starts beyond the quota of"):
        check_plan(narrow, decisions)


VICTIM = RunningJob(7, 1, 20, (1,), preemptible=True)


@pytest.mark.parametrize(
    "victim", [replace(VICTIM, preemptible=False), replace(VICTIM, priority=50), replace(VICTIM, is_stopping=True)]
)
def test_only_a_job_that_may_be_stopped_is(victim: RunningJob) -> None:
    decisions: list[Decision] = [wait(1), Preempt(7, 1, for_job=1)]
    assert check_plan(scene(waiting(1), running=(VICTIM,)), decisions) == 0
    with pytest.raises(BrokenPlanError, match="job 7 is stopped for job 1, against the rule"):
        check_plan(scene(waiting(1), running=(victim,)), decisions)
