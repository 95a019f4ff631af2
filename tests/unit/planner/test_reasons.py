"""What a waiting job is told."""

from dataclasses import replace

import pytest

from jobs.device_count import DeviceCount
from jobs.planner.demand import MOST_EXPLAINED
from jobs.planner.plan import MOST_FORESEEN, plan
from jobs.planner.reasons import wanted, why_never
from jobs.planner.request import Request
from jobs.planner.view import Holder, Host, Policy, RunningJob
from tests.unit.planner.drawing import NOW, ask, host, job, reasons, run, scene, waits


def only_reason(hosts: list[Host] | Host, request: Request, **fields: object) -> str:
    (reason,) = reasons(plan(scene(hosts, [job(1, request, **fields)]))).values()
    return reason


def until(number: int, *device_ids: int) -> RunningJob:
    """A running job of which it is known when it ends."""
    return run(number, *device_ids, predicted_end=NOW + 60)


def withdrawn(made: Host, *names: str) -> Host:
    """The host with these devices in quarantine."""
    devices = (replace(device, quarantined=device.name in names) for device in made.devices)
    return replace(made, devices=tuple(devices))


def test_a_reason_names_every_holder_that_is_in_the_way() -> None:
    decisions = plan(scene(host(cuda=3), [job(3, "cuda:0,cuda:1,cuda:2")], [until(7, 1), until(8, 3)]))

    assert reasons(decisions) == {3: "waits for cuda:0 (job 7), cuda:2 (job 8) on alpha"}
    assert waits(decisions)[3].waits_for == (Holder("alpha", "cuda:0", 7), Holder("alpha", "cuda:2", 8))


def test_a_reason_names_a_job_that_is_before_it_in_the_line() -> None:
    decisions = plan(scene(host(), [job(1, 2), job(2, "cuda:0")], [run(9, 2)]))

    assert reasons(decisions)[2].startswith("waits for cuda:0 (set aside for job 1) on alpha")


def test_a_reason_names_who_comes_first_for_a_device_that_another_has() -> None:
    waiting = [job(number, "cuda:0", duration_s=60.0) for number in (5, 6, 7)]

    assert reasons(plan(scene(host(), waiting, [until(3, 1)]))) == {
        5: "waits for cuda:0 (job 3) on alpha",
        6: "waits for cuda:0 (job 3, then job 5) on alpha",
        7: "waits for cuda:0 (job 3, then job 5) on alpha",
    }


def test_a_reason_names_the_job_whose_length_keeps_a_start_from_being_foretold() -> None:
    hosts = [host("alpha", cuda=2), host("beta", cuda=1, first_id=11)]
    waiting = [job(1, ask(1, nodes=2), duration_s=60.0), job(2, "cuda:0", duration_s=60.0), job(3, ask(1, host="beta"))]
    told = waits(plan(scene(hosts, waiting, [until(7, 1), until(8, 2), run(9, 11)])))

    # Job 2 waits for job 1, which waits for job 9: of job 1 itself enough is known.
    assert told[1].reason.endswith("cuda:0 (job 9) on beta; how long job 9 runs is not known")
    assert told[2].reason == "waits for cuda:0 (job 7, then job 1) on alpha; how long job 9 runs is not known"
    assert [each.predicted_start for each in told.values()] == [None] * 3


def test_a_reason_names_a_job_that_starts_in_the_same_plan() -> None:
    assert reasons(plan(scene(host(cuda=1), [job(1, 1, duration_s=60.0), job(2, 1)]))) == {
        2: "waits for cuda:0 (job 1) on alpha"
    }


def test_a_reason_goes_through_all_hosts_of_a_gang() -> None:
    hosts = [host("alpha", cuda=1), host("beta", cuda=1, first_id=11)]
    decisions = plan(scene(hosts, [job(1, ask(1, nodes=2))], [until(8, 1), until(9, 11)]))

    assert reasons(decisions) == {1: "waits for cuda:0 (job 8) on alpha; cuda:0 (job 9) on beta"}


def test_a_long_reason_is_cut() -> None:
    running = [until(number, number) for number in range(1, 13)]
    decisions = plan(scene(host(cuda=12), [job(99, 12)], running))

    assert reasons(decisions)[99].endswith("cuda:7 (job 8) and more on alpha")
    assert len(waits(decisions)[99].waits_for) == 8


def test_nothing_in_a_reason_changes_with_time_alone() -> None:
    made = scene(host(cuda=2), [job(1, 2), job(2, 2, not_before=NOW + 99)], [run(9, 1, predicted_end=NOW + 60)])

    assert reasons(plan(made)) == reasons(plan(replace(made, now=NOW + 30)))


def test_a_job_far_back_is_told_so_without_names_that_change_with_every_start() -> None:
    waiting = [job(number, 1) for number in range(1, MOST_FORESEEN + 3)]
    told = waits(
        plan(scene(host(cuda=1), waiting, [run(999, 1, predicted_end=NOW + 60)], policy=Policy(fair_share_s=0)))
    )

    assert told[MOST_FORESEEN].reason == (
        "waits for cuda:0 (job 999, then job 1) on alpha; how long job 1 runs is not known"
    )
    far = told[MOST_FORESEEN + 1]
    assert far.reason == "waits for 1 CUDA device, with many jobs before it in the line"
    assert (far.predicted_start, far.waits_for, far.reservation) == (None, (), None)


@pytest.mark.parametrize(
    ("closed", "reason"),
    [
        (["out of contact", "out of contact"], "every host with cuda:0 is out of contact"),
        (
            ["out of contact", "drained: new disk"],
            "no host with cuda:0 is open: alpha is out of contact and beta is drained: new disk",
        ),
    ],
)
def test_a_job_whose_hosts_are_closed_is_told_why_they_are(closed: list[str], reason: str) -> None:
    hosts = [host("alpha", closed=closed[0]), host("beta", first_id=11, closed=closed[1])]

    assert only_reason(hosts, ask("cuda:0")) == reason


def test_a_gang_is_told_which_of_its_hosts_is_closed() -> None:
    hosts = [host("alpha"), host("beta", first_id=11, closed="drained")]

    assert only_reason(hosts, ask(2, nodes=2)) == "needs 2 hosts with 2 CUDA devices, but beta is drained"


def test_a_job_whose_checkpoint_only_a_closed_host_can_read_is_told_so() -> None:
    hosts = [host("alpha", closed="drained"), host("beta", first_id=11)]
    note = "its checkpoint of step 500 is on alpha only"
    reason = only_reason(hosts, ask(1), resumes_on=frozenset({"alpha"}), resume_note=note)

    assert reason == "its checkpoint of step 500 is on alpha only, and alpha is drained"


def test_a_job_whose_checkpoint_a_busy_host_can_read_is_told_both() -> None:
    hosts = [host("alpha", cuda=1), host("beta", cuda=1, first_id=11)]
    note = "its checkpoint of step 500 is on alpha only"
    waiting = [job(1, 1, resumes_on=frozenset({"alpha"}), resume_note=note)]

    assert reasons(plan(scene(hosts, waiting, [until(9, 1)]))) == {1: f"waits for cuda:0 (job 9) on alpha; {note}"}


def test_a_job_that_waits_is_told_too_that_it_will_begin_anew_wherever_that_is() -> None:
    note = "its checkpoint of step 500 is on beta only, and no such host is in contact, so it begins anew"
    waiting = [job(1, 1, resume_note=note)]

    assert reasons(plan(scene(host(cuda=1), waiting, [until(9, 1)]))) == {
        1: f"waits for cuda:0 (job 9) on alpha; {note}"
    }


def test_a_job_that_rests_is_told_until_when() -> None:
    assert only_reason(host(), ask(1), not_before=NOW + 60) == (
        "rests until 1970-01-12 13:47:40 UTC, since its last attempt was lost"
    )


def test_without_any_host_a_job_waits_for_one() -> None:
    assert only_reason([], ask("cpu")) == "no host is registered yet"


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (ask("cuda:0,cuda:1"), None),
        (ask("cuda:5"), "no registered host has cuda:5"),
        (ask("cuda:0,cuda:5"), "no registered host has cuda:0 and cuda:5"),
        (ask("cuda:0", host="beta"), "no registered host has cuda:0 on beta"),
        (ask("cpu", ranks=9), "no registered host has 9 CPU slots"),
        (ask("mps"), "no registered host has mps"),
        (ask("auto"), None),
        (ask(2), None),
        (ask(2, nodes=2), "needs 2 hosts with 2 CUDA devices, and there is only alpha"),
        (
            ask(DeviceCount(count=3, host="beta", min_memory_gb=40, name="A100")),
            "no registered host has 3 CUDA devices of at least 40.0 GB named 'A100' on beta",
        ),
    ],
    ids=str,
)
def test_it_is_said_beforehand_what_no_host_could_ever_run(request_: Request, why: str | None) -> None:
    assert why_never(request_, [host(cpu=2, closed="out of contact")]) == why


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (ask("cuda:1"), "cuda:1 on alpha is in quarantine (an operator releases it: rankzero hosts release)"),
        (
            ask("cuda:2,cuda:0,cuda:1"),
            "cuda:2, cuda:1 on alpha are in quarantine (an operator releases them: rankzero hosts release)",
        ),
        (
            ask(2),
            "needs 2 CUDA devices, and cuda:1, cuda:2 on alpha are in quarantine "
            "(an operator releases them: rankzero hosts release)",
        ),
        (
            ask("cuda:0", nodes=2),
            "needs cuda:0 on each of 2 hosts, and cuda:0 on beta is in quarantine "
            "(an operator releases it: rankzero hosts release)",
        ),
        (ask("cuda:1", host="beta"), "no registered host has cuda:1 on beta"),
        (ask(4), "no registered host has 4 CUDA devices"),
        (ask(1), None),
    ],
    ids=str,
)
def test_a_device_in_quarantine_is_told_of_as_one_that_is_there(request_: Request, why: str | None) -> None:
    hosts = [
        withdrawn(host("alpha", cuda=3), "cuda:1", "cuda:2"),
        withdrawn(host("beta", cuda=1, first_id=11), "cuda:0"),
    ]

    assert why_never(request_, hosts) == why
    if why is not None:
        assert only_reason(hosts, request_) == why


def test_a_job_whose_other_hosts_are_closed_is_told_of_the_device_in_quarantine_too() -> None:
    hosts = [withdrawn(host("alpha"), "cuda:0"), host("beta", first_id=11, closed="drained")]

    assert only_reason(hosts, ask("cuda:0")) == (
        "cuda:0 on alpha is in quarantine (an operator releases it: rankzero hosts release); "
        "every other host with cuda:0 is drained"
    )


def test_it_is_worked_out_for_the_first_few_requests_only_why_no_host_serves_them() -> None:
    strange = [ask(DeviceCount(count=1, name=f"no such {number}")) for number in range(MOST_EXPLAINED + 1)]
    waiting = [job(number, request) for number, request in enumerate(strange, start=1)]
    told = reasons(plan(scene(host(), [*waiting, job(999, strange[0])])))

    assert told[MOST_EXPLAINED] == f"no registered host has 1 CUDA device named 'no such {MOST_EXPLAINED - 1}'"
    assert told[MOST_EXPLAINED + 1] == f"no host that is open has 1 CUDA device named 'no such {MOST_EXPLAINED}'"
    assert told[999] == told[1], "it was worked out already"


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (ask("cuda:0,cuda:1"), "cuda:0 and cuda:1"),
        (ask("cpu", ranks=1), "1 CPU slot"),
        (ask("auto"), "a device"),
        (ask(1), "1 CUDA device"),
        (ask(4, nodes=2), "4 CUDA devices on each of 2 hosts"),
    ],
    ids=str,
)
def test_what_a_job_wants_is_said_in_words(request_: Request, words: str) -> None:
    assert wanted(request_) == words
