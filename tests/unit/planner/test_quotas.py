"""How many devices an account may have at once, and whose turn it is within that."""

import pytest

from jobs.planner.plan import plan
from jobs.planner.view import Quota, WaitingJob
from tests.unit.planner.drawing import NOW, host, job, reasons, run, scene, started, waits

ANN = (Quota(("user", "ann"), 3),)
TEAM = (Quota(("label", "team=vision"), 3),)


def ann(number: int, wants: int, **fields: object) -> WaitingJob:
    return job(number, wants, user="ann", **fields)


def test_a_user_gets_no_more_devices_at_once_than_the_quota() -> None:
    waiting = [ann(1, 2), ann(2, 2), job(3, 2, user="bob")]

    assert started(host(cuda=8), waiting, quotas=ANN) == {1, 3}


def test_devices_of_running_jobs_count() -> None:
    assert started(host(cuda=8), [ann(1, 2)], [run(9, 1, 2, user="ann")], quotas=ANN) == set()


def test_a_label_has_a_quota_whoever_the_user_is() -> None:
    waiting = [job(number, 2, user=f"user{number}", labels={"team": "vision"}) for number in (1, 2)]

    assert started(host(cuda=8), waiting, quotas=TEAM) == {1}


def test_a_quota_for_every_user_is_for_each_that_has_none_of_its_own() -> None:
    quotas = (Quota(("user", "*"), 1), Quota(("user", "ann"), 3))
    waiting = [ann(1, 2), job(2, 1, user="bob"), job(3, 1, user="bob"), job(4, 1), job(5, 1), job(6, 1, user="cy")]

    assert started(host(cuda=8), waiting, quotas=quotas) == {1, 2, 4, 6}


def test_a_quota_of_no_limit_frees_a_user_from_that_of_every_user() -> None:
    quotas = (Quota(("user", "*"), 1), Quota(("user", "ann")))

    assert started(host(cuda=8), [ann(1, 4)], quotas=quotas) == {1}


def test_nothing_is_set_aside_for_a_job_over_its_quota() -> None:
    waiting = [ann(1, 3), job(2, 7, user="bob")]

    assert started(host(cuda=8), waiting, [run(9, 1, user="ann")], quotas=ANN) == {2}


def test_within_a_quota_a_later_job_does_not_take_what_an_earlier_one_needs() -> None:
    """Else a job that wants the whole quota would never find it unused while smaller ones keep coming."""
    waiting = [ann(1, 3), ann(2, 1)]

    assert started(host(cuda=8), waiting, [run(9, 1, user="ann")], quotas=ANN) == set()


@pytest.mark.parametrize(("duration_s", "passes"), [(60.0, True), (61.0, False), (None, False)])
def test_it_passes_one_that_waits_for_devices_if_it_ends_before_these_come(
    duration_s: float | None, passes: bool
) -> None:
    waiting = [ann(1, 3), ann(2, 1, duration_s=duration_s)]
    running = [run(9, 1, 2, user="bob", predicted_end=NOW + 60)]

    assert (2 in started(host(cuda=4), waiting, running, quotas=ANN)) is passes


def test_a_job_that_no_quota_allows_keeps_nobody_waiting() -> None:
    made = scene(host(cuda=8), [ann(1, 4), ann(2, 3)], quotas=ANN)

    assert reasons(plan(made)) == {1: "asks for 4 devices, more than the quota of user ann (3 devices) allows"}


def test_a_job_that_one_quota_never_allows_keeps_no_turn_in_another() -> None:
    vision = {"team": "vision"}
    waiting = [ann(1, 4, labels=vision), ann(2, 1, labels=vision)]
    quotas = (Quota(("user", "ann"), 4), *TEAM)
    told = reasons(plan(scene(host(cuda=8), waiting, [run(9, 1, user="ann")], quotas=quotas)))

    assert told == {1: "asks for 4 devices, more than the quota of label team=vision (3 devices) allows"}


def test_one_users_many_jobs_do_not_use_up_what_others_have_of_a_label() -> None:
    quotas = (Quota(("user", "ann"), 1), Quota(("label", "team=vision"), 4))
    vision = {"team": "vision"}
    waiting = [ann(number, 1, labels=vision) for number in range(1, 9)]
    waiting += [job(10, 2, user="bob", labels=vision), job(11, 1, user="bob", labels=vision)]

    # One of ann's runs, and the next of hers keeps its turn in the team: that leaves two of four.
    assert started(host(cuda=8), waiting, quotas=quotas) == {1, 10}


def test_a_job_over_its_quota_is_told_which_and_how_much_of_it_is_used() -> None:
    waiting = [ann(1, 2), ann(2, 1), ann(3, 3), job(4, 2, labels={"team": "vision"}), job(5, 1, user="bob")]
    quotas = (*ANN, *TEAM, Quota(("user", "bob"), 0))
    running = [run(8, 1, 2, user="ann"), run(9, 3, 4, labels={"team": "vision"})]

    assert reasons(plan(scene(host(cuda=8), waiting, running, quotas=quotas))) == {
        1: "waits for the quota of user ann (3 devices), with 2 in use",
        2: "waits for the quota of user ann (3 devices), with others before it",
        3: "waits for the quota of user ann (3 devices), with others before it",
        4: "waits for the quota of label team=vision (3 devices), with 2 in use",
        5: "asks for 1 device, more than the quota of user bob (0 devices) allows",
    }


def test_a_job_over_its_quota_is_foretold_no_start() -> None:
    told = waits(plan(scene(host(cuda=8), [ann(1, 3)], [run(9, 1, user="ann")], quotas=ANN)))

    assert told[1].predicted_start is None
    assert told[1].reservation is None
