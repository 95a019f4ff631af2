"""Which devices a job starts on."""

from dataclasses import replace

import pytest

from jobs.device_count import DeviceCount
from jobs.planner.plan import plan
from jobs.planner.view import Device, Host
from tests.unit.planner.drawing import ask, host, job, reasons, run, scene, started, starts


def test_a_job_gets_exactly_the_devices_it_lists_in_rank_order() -> None:
    assert starts(plan(scene(host(cuda=4), [job(1, "cuda:2,cuda:0")]))) == {1: [("alpha", ["cuda:2", "cuda:0"])]}


def test_jobs_on_disjoint_lists_start_together() -> None:
    assert started(host(), [job(1, "cuda:0"), job(2, "cuda:1")]) == {1, 2}


def test_of_overlapping_lists_the_first_come_starts() -> None:
    assert started(host(), [job(2, "cuda:0,cuda:1"), job(1, "cuda:1")]) == {1}


def test_a_job_starts_with_all_of_its_devices_or_with_none() -> None:
    assert started(host(), [job(1, "cuda:0,cuda:1")], [run(9, 2)]) == set()


def test_a_job_takes_another_host_when_the_first_is_busy() -> None:
    hosts = [host("alpha"), host("beta", first_id=11)]

    assert starts(plan(scene(hosts, [job(1, "cuda:0,cuda:1")], [run(9, 1)]))) == {1: [("beta", ["cuda:0", "cuda:1"])]}


def test_a_job_on_one_node_never_spans_two_hosts() -> None:
    assert started([host("alpha", cuda=1), host("beta", cuda=1, first_id=11)], [job(1, 2)]) == set()


def test_a_job_on_two_nodes_gets_its_devices_on_each_of_two_hosts() -> None:
    hosts = [host("beta", cuda=3, first_id=11), host("alpha", cuda=2)]

    assert starts(plan(scene(hosts, [job(1, ask(2, nodes=2))]))) == {
        1: [("alpha", ["cuda:0", "cuda:1"]), ("beta", ["cuda:0", "cuda:1"])]
    }


def test_a_list_on_two_nodes_means_the_same_devices_on_each() -> None:
    hosts = [host("alpha", cuda=3), host("beta", cuda=3, first_id=11), host("gamma", cuda=3, first_id=21)]
    waiting = [job(1, ask("cuda:2,cuda:0", nodes=2))]

    assert starts(plan(scene(hosts, waiting, [run(9, 13)]))) == {
        1: [("alpha", ["cuda:2", "cuda:0"]), ("gamma", ["cuda:2", "cuda:0"])]
    }


def test_a_job_on_two_nodes_does_not_start_on_one() -> None:
    hosts = [host("alpha", cuda=4), host("beta", cuda=4, first_id=11)]

    assert started(hosts, [job(1, ask(2, nodes=2))], [run(9, 11, 12, 13)]) == set()


def test_a_pinned_job_runs_on_its_host_only() -> None:
    hosts = [host("alpha"), host("beta", first_id=11)]
    pinned = [
        job(1, ask("cuda:0", host="beta")),
        job(2, DeviceCount(count=1, host="beta")),
        job(3, ask(1, host="beta")),
    ]

    assert {number: nodes[0] for number, nodes in starts(plan(scene(hosts, pinned))).items()} == {
        1: ("beta", ["cuda:0"]),
        2: ("beta", ["cuda:1"]),
    }


def test_a_job_that_continues_runs_only_where_its_checkpoint_can_be_read() -> None:
    hosts = [host("alpha"), host("beta", first_id=11), host("gamma", first_id=21)]
    waiting = [job(1, 1, resumes_on=frozenset({"beta", "gamma"})), job(2, 1, resumes_on=frozenset({"beta"}))]

    assert {number: nodes[0][0] for number, nodes in starts(plan(scene(hosts, waiting, [run(9, 11)]))).items()} == {
        1: "beta"
    }


def test_a_closed_host_gets_nothing() -> None:
    hosts = [host("alpha", closed="drained"), host("beta", first_id=11)]

    assert starts(plan(scene(hosts, [job(1, 1)])))[1] == [("beta", ["cuda:0"])]


def test_a_device_in_quarantine_is_not_handed_out() -> None:
    made = host()
    made = replace(made, devices=(replace(made.devices[0], quarantined=True), made.devices[1]))

    assert starts(plan(scene(made, [job(1, "cuda:0"), job(2, 1), job(3, 1)]))) == {2: [("alpha", ["cuda:1"])]}


def test_a_job_for_any_device_waits_for_the_accelerator_in_quarantine_and_takes_no_cpu_slot() -> None:
    made = host(cuda=1, cpu=2)
    made = replace(made, devices=(replace(made.devices[0], quarantined=True), *made.devices[1:]))
    decisions = plan(scene(made, [job(1, "auto")]))

    assert starts(decisions) == {}
    assert reasons(decisions) == {
        1: "needs a device, and cuda:0 on alpha is in quarantine (an operator releases it: rankzero hosts release)"
    }


def test_small_jobs_fill_up_a_host_before_they_break_into_a_whole_one() -> None:
    hosts = [host("alpha", cuda=4), host("beta", cuda=4, first_id=11)]
    decisions = plan(scene(hosts, [job(1, 1), job(2, 1), job(3, "cuda:3"), job(4, 4)], [run(9, 11)]))

    assert {number: nodes[0][0] for number, nodes in starts(decisions).items()} == {
        1: "beta",
        2: "beta",
        3: "beta",
        4: "alpha",
    }


def test_devices_are_handed_out_by_number_and_hosts_by_name() -> None:
    hosts = [host("beta", cuda=12, first_id=101), host("alpha", cuda=12)]

    assert starts(plan(scene(hosts, [job(1, 11)]))) == {1: [("alpha", [f"cuda:{index}" for index in range(11)])]}


def test_ranks_on_the_cpu_take_a_slot_each() -> None:
    waiting = [job(1, ask("cpu", ranks=3)), job(2, ask("cpu", ranks=2))]

    assert starts(plan(scene(host(cuda=0, cpu=4), waiting))) == {1: [("alpha", ["cpu:0", "cpu:1", "cpu:2"])]}


def test_auto_takes_one_accelerator_where_there_is_one() -> None:
    assert starts(plan(scene(host(cuda=1, cpu=2), [job(1, "auto")]))) == {1: [("alpha", ["cuda:0"])]}


def test_auto_waits_for_a_busy_accelerator_and_does_not_fall_back_to_the_cpu() -> None:
    assert started(host(cuda=1, cpu=2), [job(1, "auto")], [run(9, 1)]) == set()


def test_auto_waits_for_an_accelerator_whose_host_is_out_of_contact() -> None:
    hosts = [host("alpha", cuda=1, closed="out of contact"), host("beta", cuda=0, cpu=2, first_id=11)]

    assert started(hosts, [job(1, "auto")]) == set()


def test_auto_takes_the_cpu_where_no_host_has_an_accelerator() -> None:
    assert starts(plan(scene(host(cuda=0, cpu=2), [job(1, "auto")]))) == {1: [("alpha", ["cpu:0"])]}


def test_auto_takes_an_apple_gpu() -> None:
    laptop = Host("alpha", (Device(1, "mps", "mps"), Device(2, "cpu:0", "cpu")))

    assert starts(plan(scene(laptop, [job(1, "auto")]))) == {1: [("alpha", ["mps"])]}


@pytest.mark.parametrize(
    ("wanted", "devices"),
    [
        ({"count": 2}, ["cuda:0", "cuda:1"]),
        ({"count": 1, "name": "a100"}, ["cuda:1"]),
        ({"count": 2, "min_memory_gb": 80}, ["cuda:0", "cuda:3"]),
        ({"count": 1, "min_memory_gb": 80, "name": "A100"}, ["cuda:3"]),
        ({"count": 1, "host": "alpha"}, ["cuda:0"]),
        ({"count": 1, "host": "beta"}, None),
        ({"count": 4}, None),
    ],
    ids=str,
)
def test_a_count_takes_any_free_devices_that_fit(wanted: dict[str, object], devices: list[str] | None) -> None:
    made = Host(
        "alpha",
        (
            Device(1, "cuda:0", "cuda", "NVIDIA H100", 80_000_000_000),
            Device(2, "cuda:1", "cuda", "NVIDIA A100", 40_000_000_000),
            Device(3, "cuda:2", "cuda", "NVIDIA A100", 80_000_000_000),
            Device(4, "cuda:3", "cuda", "NVIDIA A100", 80_000_000_000),
            Device(5, "cpu:0", "cpu"),
        ),
    )
    found = starts(plan(scene(made, [job(1, DeviceCount.model_validate(wanted))], [run(9, 3)])))

    assert found == ({} if devices is None else {1: [("alpha", devices)]})


def test_a_job_that_rests_after_a_lost_attempt_does_not_start_before_its_time() -> None:
    waiting = [job(1, 1, not_before=1_000_000.5), job(2, 1, not_before=999_999.5)]

    assert started(host(cuda=4), waiting) == {2}
