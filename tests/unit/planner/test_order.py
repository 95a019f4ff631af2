"""Who comes before whom."""

from typing import Any

import pytest

from jobs.planner.order import in_line
from jobs.planner.plan import plan
from jobs.planner.view import Policy, Quota, Reservation, WaitingJob
from tests.unit.planner.drawing import NOW, host, job, scene, waits


def line(*waiting: WaitingJob, **fields: Any) -> list[int]:
    """The numbers of these jobs, first come first."""
    made = scene(host(), waiting, **fields)
    return [each.id for _key, each in in_line(made, usable={1, 2})]


def test_a_higher_priority_goes_before_an_earlier_submission() -> None:
    assert line(job(1, 1, priority=10), job(2, 1, priority=90)) == [2, 1]


def test_equal_priorities_go_by_submission_and_then_by_number() -> None:
    assert line(job(3, 1, waits_from=5), job(2, 1, waits_from=5), job(4, 1, waits_from=4)) == [4, 2, 3]


def test_one_point_of_priority_counts_as_much_as_the_ageing_time() -> None:
    policy = Policy(ageing_s=60)
    older = job(1, 1, priority=50, waits_from=0)

    assert line(older, job(2, 1, priority=51, waits_from=59), policy=policy) == [2, 1]
    assert line(older, job(2, 1, priority=51, waits_from=61), policy=policy) == [1, 2]


def test_waiting_alone_never_changes_who_comes_first() -> None:
    waiting = [job(1, 1, priority=50, waits_from=0), job(2, 1, priority=51, waits_from=100)]

    assert line(*waiting, now=200.0) == line(*waiting, now=1e9)


def test_who_used_more_lately_comes_later() -> None:
    waiting = [job(1, 1, user="ann"), job(2, 1, user="bob"), job(3, 1)]

    assert line(*waiting, usage={("user", "ann"): 900.0, ("user", "bob"): 100.0}) == [3, 2, 1]


def test_a_larger_share_may_use_more() -> None:
    waiting = [job(1, 1, user="ann"), job(2, 1, user="bob")]
    usage = {("user", "ann"): 900.0, ("user", "bob"): 500.0}

    assert line(*waiting, usage=usage) == [2, 1]
    assert line(*waiting, usage=usage, quotas=(Quota(("user", "ann"), share=2.0),)) == [1, 2]
    assert line(*waiting, usage=usage, quotas=(Quota(("user", "*"), share=0.5), Quota(("user", "bob")))) == [2, 1]


def test_a_label_with_a_quota_shares_with_the_other_values_of_its_key() -> None:
    waiting = [job(1, 1, labels={"team": "vision"}), job(2, 1, labels={"team": "speech"})]
    usage = {("label", "team=vision"): 900.0, ("label", "team=speech"): 100.0, ("label", "kind=sweep"): 1e9}

    assert line(*waiting, usage=usage) == [1, 2], "without a quota for it, use by a label counts for nothing"
    assert line(*waiting, usage=usage, quotas=(Quota(("label", "team=vision")),)) == [2, 1]


@pytest.mark.parametrize(("used", "later_s"), [({}, 0.0), ({"ann": 5.0}, 3600.0), ({"ann": 1.0, "bob": 3.0}, 900.0)])
def test_the_fair_share_puts_a_job_off_by_the_part_that_its_user_used(used: dict[str, float], later_s: float) -> None:
    usage = {("user", name): seconds for name, seconds in used.items()}
    made = scene(host(), [job(1, 1, user="ann", priority=0, waits_from=NOW)], usage=usage)
    ((key, _job),) = in_line(made, usable=())

    assert key == NOW + later_s


def test_a_job_for_which_others_were_stopped_comes_before_everybody() -> None:
    cleared = job(1, 2, priority=0, waits_from=NOW, reservation=Reservation((1, 2), NOW, preempts=True))

    assert line(cleared, job(2, 1, priority=100, waits_from=0)) == [1, 2]


def test_it_goes_back_to_its_place_when_the_devices_are_gone() -> None:
    cleared = job(1, 2, priority=0, waits_from=NOW, reservation=Reservation((1, 3), NOW, preempts=True))

    assert line(cleared, job(2, 1, priority=100, waits_from=0)) == [2, 1]


def test_the_line_key_of_each_waiting_job_is_a_number_that_a_database_stores() -> None:
    cleared = job(1, 2, priority=0, waits_from=NOW, reservation=Reservation((1, 2), NOW, preempts=True))
    told = waits(plan(scene(host(closed="drained"), [cleared, job(2, 1)])))

    assert all(abs(each.line_key) < 1e15 for each in told.values())
