"""The planner: who starts where, who waits for whom, and what no plan ever does."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.planner import Decision, Device, Host, Start, Wait, WaitingJob, can_ever_run, plan
from jobs.device_count import DeviceCount


def host(name: str = "alpha", *, cuda: int = 2, cpu: int = 0, alive: bool = True, first_id: int = 1) -> Host:
    names = [f"cuda:{index}" for index in range(cuda)] + [f"cpu:{index}" for index in range(cpu)]
    devices = [Device(first_id + at, each, each.partition(":")[0]) for at, each in enumerate(names)]
    return Host(name, tuple(devices), alive)


def hold(host: Host, **holders: int) -> Host:
    """The host with devices held: `hold(host, cuda0=7)` has job 7 on `cuda:0`."""
    return replace(
        host, devices=tuple(replace(each, held_by=holders.get(each.name.replace(":", ""))) for each in host.devices)
    )


def job(number: int, device: str | DeviceCount, *, ranks: int | None = None, priority: int = 50) -> WaitingJob:
    if ranks is None:
        ranks = device.count if isinstance(device, DeviceCount) else len(device.split(","))
    return WaitingJob(number, priority, device, ranks)


def starts(decisions: Sequence[Decision]) -> dict[int, tuple[str, list[str]]]:
    """Host and device names, in rank order, of each job that starts."""
    started = [decision for decision in decisions if isinstance(decision, Start)]
    return {each.job_id: (each.host_name, [device.name for device in each.devices]) for each in started}


def reasons(decisions: Sequence[Decision]) -> dict[int, str]:
    return {decision.job_id: decision.reason for decision in decisions if isinstance(decision, Wait)}


def test_a_job_gets_exactly_the_devices_it_lists_in_rank_order() -> None:
    assert starts(plan([job(1, "cuda:2,cuda:0")], [host(cuda=4)])) == {1: ("alpha", ["cuda:2", "cuda:0"])}


def test_jobs_on_disjoint_lists_start_together() -> None:
    assert set(starts(plan([job(1, "cuda:0"), job(2, "cuda:1")], [host()]))) == {1, 2}


def test_of_overlapping_lists_the_first_come_starts_and_the_other_waits_for_it() -> None:
    decisions = plan([job(2, "cuda:0,cuda:1"), job(1, "cuda:1")], [host()])

    assert starts(decisions) == {1: ("alpha", ["cuda:1"])}
    assert reasons(decisions) == {2: "waits for cuda:1 (job 1) on alpha"}


def test_a_higher_priority_goes_before_an_earlier_submission() -> None:
    decisions = plan([job(1, "cuda:0", priority=10), job(2, "cuda:0", priority=90)], [host()])

    assert set(starts(decisions)) == {2}
    assert reasons(decisions) == {1: "waits for cuda:0 (job 2) on alpha"}


def test_a_job_starts_with_all_of_its_devices_or_with_none() -> None:
    assert starts(plan([job(1, "cuda:0,cuda:1")], [hold(host(), cuda1=9)])) == {}


def test_the_devices_a_job_waits_for_are_set_aside_for_it() -> None:
    decisions = plan([job(1, "cuda:0,cuda:1"), job(2, "cuda:0")], [hold(host(), cuda1=9)])

    assert starts(decisions) == {}
    assert reasons(decisions)[2] == "waits for cuda:0 (job 1) on alpha"


def test_a_later_job_that_wants_other_devices_passes_one_that_waits() -> None:
    decisions = plan([job(1, "cuda:0,cuda:1"), job(2, "cuda:2")], [hold(host(cuda=3), cuda1=9)])

    assert starts(decisions) == {2: ("alpha", ["cuda:2"])}


def test_a_reason_names_every_holder_that_is_in_the_way() -> None:
    decisions = plan([job(3, "cuda:0,cuda:1,cuda:2")], [hold(host(cuda=3), cuda0=7, cuda2=8)])

    assert reasons(decisions) == {3: "waits for cuda:0 (job 7), cuda:2 (job 8) on alpha"}


def test_a_long_reason_is_cut() -> None:
    held = hold(host(cuda=12), **{f"cuda{index}": index + 1 for index in range(12)})
    (reason,) = reasons(plan([job(99, ",".join(f"cuda:{index}" for index in range(12)))], [held])).values()

    assert reason.endswith("cuda:7 (job 8) and more on alpha")


def test_a_job_takes_another_host_when_the_first_is_busy() -> None:
    hosts = [hold(host("alpha"), cuda0=9), host("beta", first_id=11)]

    assert starts(plan([job(1, "cuda:0,cuda:1")], hosts)) == {1: ("beta", ["cuda:0", "cuda:1"])}


def test_a_job_never_spans_two_hosts() -> None:
    hosts = [host("alpha", cuda=1), host("beta", cuda=1, first_id=11)]
    decisions = plan([job(1, DeviceCount(count=2))], hosts)

    assert reasons(decisions) == {1: "no registered host has 2 CUDA devices"}


def test_a_host_out_of_contact_gets_nothing_and_the_job_says_so() -> None:
    decisions = plan([job(1, "cuda:0")], [host(alive=False)])

    assert reasons(decisions) == {1: "every host with cuda:0 is out of contact"}


def test_a_device_that_no_host_has_is_waited_for_with_the_reason() -> None:
    assert reasons(plan([job(1, "cuda:7")], [host()])) == {1: "no registered host has cuda:7"}


def test_without_any_host_a_job_waits_for_one() -> None:
    assert reasons(plan([job(1, "cpu")], [])) == {1: "no host is registered yet"}


def test_ranks_on_the_cpu_take_a_slot_each() -> None:
    hosts = [host(cuda=0, cpu=4)]
    decisions = plan([job(1, "cpu", ranks=3), job(2, "cpu", ranks=2)], hosts)

    assert starts(decisions) == {1: ("alpha", ["cpu:0", "cpu:1", "cpu:2"])}
    assert "job 1" in reasons(decisions)[2]


def test_auto_takes_one_accelerator_where_there_is_one() -> None:
    assert starts(plan([job(1, "auto")], [host(cuda=1, cpu=2)])) == {1: ("alpha", ["cuda:0"])}


def test_auto_waits_for_a_busy_accelerator_and_does_not_fall_back_to_the_cpu() -> None:
    decisions = plan([job(1, "auto")], [hold(host(cuda=1, cpu=2), cuda0=9)])

    assert reasons(decisions) == {1: "waits for cuda:0 (job 9) on alpha"}


def test_auto_takes_the_cpu_where_no_host_has_an_accelerator() -> None:
    assert starts(plan([job(1, "auto")], [host(cuda=0, cpu=2)])) == {1: ("alpha", ["cpu:0"])}


def test_a_count_takes_any_free_devices_that_fit() -> None:
    devices = (
        Device(1, "cuda:0", "cuda", "NVIDIA H100", 80_000_000_000),
        Device(2, "cuda:1", "cuda", "NVIDIA A100", 40_000_000_000),
        Device(3, "cuda:2", "cuda", "NVIDIA A100", 80_000_000_000, held_by=9),
        Device(4, "cuda:3", "cuda", "NVIDIA A100", 80_000_000_000),
        Device(5, "cpu:0", "cpu"),
    )
    hosts = [Host("alpha", devices)]

    def chosen(**wanted: object) -> list[str]:
        found = starts(plan([job(1, DeviceCount.model_validate(wanted))], hosts))
        return found[1][1] if found else []

    assert chosen(count=2) == ["cuda:0", "cuda:1"]
    assert chosen(count=1, name="a100") == ["cuda:1"]
    assert chosen(count=2, min_memory_gb=80) == ["cuda:0", "cuda:3"]
    assert chosen(count=1, min_memory_gb=80, name="A100") == ["cuda:3"]
    assert chosen(count=1, host="alpha") == ["cuda:0"]
    assert chosen(count=1, host="beta") == []
    assert chosen(count=4) == []


def test_a_count_waits_where_the_most_of_it_is_free() -> None:
    hosts = [
        hold(host("alpha", cuda=3), cuda0=7, cuda1=8),
        hold(host("beta", cuda=3, first_id=11), cuda0=9),
    ]

    assert reasons(plan([job(1, DeviceCount(count=3))], hosts)) == {1: "waits for cuda:0 (job 9) on beta"}


def test_a_count_waits_for_the_devices_that_come_free_soonest() -> None:
    decisions = plan(
        [job(1, "cuda:0,cuda:1"), job(2, DeviceCount(count=2))],
        [hold(host(cuda=5), cuda1=7, cuda2=8, cuda3=9)],
    )

    # Not for cuda:0 and cuda:1, which job 1 is in line for; cuda:4 is free.
    assert reasons(decisions)[2] == "waits for cuda:2 (job 8) on alpha"


@pytest.mark.parametrize(
    ("device", "ranks", "why"),
    [
        ("cuda:0,cuda:1", 2, None),
        ("cuda:5", 1, "no registered host has cuda:5"),
        ("cuda:0,cuda:5", 2, "no registered host has cuda:0 and cuda:5"),
        ("cpu", 9, "no registered host has 9 CPU slots"),
        ("mps", 1, "no registered host has mps"),
        ("auto", 1, None),
        (DeviceCount(count=2), 2, None),
        (
            DeviceCount(count=3, host="beta", min_memory_gb=40, name="A100"),
            3,
            "no registered host has 3 CUDA devices on beta of at least 40.0 GB named 'A100'",
        ),
    ],
    ids=repr,
)
def test_it_is_said_beforehand_what_no_host_could_ever_run(
    device: str | DeviceCount, ranks: int, why: str | None
) -> None:
    assert can_ever_run(device, ranks, [hold(host(cpu=2, alive=False), cuda0=9)]) == why


# Hosts have few devices and jobs want many, so that most plans have something to decide.

DEVICE_LISTS = st.lists(st.integers(0, 3), min_size=1, max_size=4, unique=True).map(
    lambda indices: ",".join(f"cuda:{index}" for index in indices)
)
REQUESTS: st.SearchStrategy[str | DeviceCount] = st.one_of(
    DEVICE_LISTS,
    st.sampled_from(["cpu", "auto", "mps"]),
    st.builds(
        DeviceCount,
        count=st.integers(1, 4),
        host=st.none() | st.sampled_from(["a", "b", "nowhere"]),
        min_memory_gb=st.none() | st.sampled_from([20.0, 60.0]),
        name=st.none() | st.just("A100"),
    ),
)


@st.composite
def waiting_jobs(draw: st.DrawFn, requests: st.SearchStrategy[str | DeviceCount] = REQUESTS) -> list[WaitingJob]:
    numbers = draw(st.lists(st.integers(1, 50), max_size=8, unique=True))
    found = []
    for number in numbers:
        device = draw(requests)
        ranks = draw(st.integers(1, 3)) if device == "cpu" else None
        found.append(job(number, device, ranks=ranks, priority=draw(st.sampled_from([0, 50, 100]))))
    return found


@st.composite
def some_hosts(draw: st.DrawFn) -> list[Host]:
    hosts = []
    for at, name in enumerate(draw(st.lists(st.sampled_from("abcd"), max_size=3, unique=True))):
        made = host(name, cuda=draw(st.integers(0, 4)), cpu=draw(st.integers(0, 3)), first_id=100 * at + 1)
        devices = [
            replace(
                each,
                held_by=draw(st.none() | st.none() | st.integers(900, 905)),
                memory_bytes=draw(st.sampled_from([None, 40_000_000_000, 80_000_000_000])),
                model=draw(st.sampled_from([None, "NVIDIA A100"])),
            )
            for each in made.devices
        ]
        hosts.append(Host(name, tuple(devices), alive=draw(st.booleans())))
    return hosts


@given(jobs=waiting_jobs(), hosts=some_hosts())
def test_every_job_gets_one_decision_in_order_of_priority_and_then_of_submission(
    jobs: list[WaitingJob], hosts: list[Host]
) -> None:
    expected = [each.id for each in sorted(jobs, key=lambda each: (-each.priority, each.id))]

    assert [decision.job_id for decision in plan(jobs, hosts)] == expected


@given(jobs=waiting_jobs(), hosts=some_hosts())
def test_no_device_is_given_twice_or_while_it_is_held(jobs: list[WaitingJob], hosts: list[Host]) -> None:
    given_out = [device for each in plan(jobs, hosts) if isinstance(each, Start) for device in each.devices]

    assert len({device.id for device in given_out}) == len(given_out)
    assert [device for device in given_out if device.held_by is not None] == []


@given(jobs=waiting_jobs(), hosts=some_hosts())
def test_a_job_starts_on_one_living_host_with_as_many_devices_as_it_has_ranks(
    jobs: list[WaitingJob], hosts: list[Host]
) -> None:
    by_id = {each.id: each for each in jobs}
    by_name = {each.name: each for each in hosts}
    for each in plan(jobs, hosts):
        if isinstance(each, Start):
            assert by_name[each.host_name].alive
            assert set(each.devices) <= set(by_name[each.host_name].devices)
            assert len(each.devices) == by_id[each.job_id].device_count


@given(jobs=waiting_jobs(), hosts=some_hosts())
def test_a_job_gets_only_what_it_asked_for(jobs: list[WaitingJob], hosts: list[Host]) -> None:
    by_id = {each.id: each for each in jobs}
    for each in plan(jobs, hosts):
        if not isinstance(each, Start):
            continue
        wanted = by_id[each.job_id].device
        if isinstance(wanted, DeviceCount):
            assert wanted.host in (None, each.host_name)
            assert all(device.kind == "cuda" for device in each.devices)
            assert all((device.memory_bytes or 0) >= (wanted.min_memory_gb or 0) * 1e9 for device in each.devices)
            assert all(wanted.name is None or wanted.name in (device.model or "") for device in each.devices)
        elif wanted == "cpu":
            assert all(device.kind == "cpu" for device in each.devices)
        elif wanted != "auto":
            assert ",".join(device.name for device in each.devices) == wanted


@given(jobs=waiting_jobs(), hosts=some_hosts())
def test_later_jobs_change_nothing_for_earlier_ones(jobs: list[WaitingJob], hosts: list[Host]) -> None:
    in_order = sorted(jobs, key=lambda each: (-each.priority, each.id))
    whole = plan(jobs, hosts)

    for length in range(len(in_order)):
        assert plan(in_order[:length], hosts) == whole[:length]


@given(jobs=waiting_jobs(DEVICE_LISTS), holders=st.lists(st.none() | st.integers(900, 905), min_size=4, max_size=4))
def test_no_later_job_takes_a_device_that_an_earlier_one_waits_for(
    jobs: list[WaitingJob], holders: list[int | None]
) -> None:
    hosts = [hold(host(cuda=4), **{f"cuda{index}": each for index, each in enumerate(holders) if each is not None})]
    by_id = {each.id: each for each in jobs}
    waited_for: set[str] = set()
    for each in plan(jobs, hosts):
        if isinstance(each, Start):
            assert not waited_for & {device.name for device in each.devices}
        elif each.reason.startswith("waits for "):
            waited_for |= set(str(by_id[each.job_id].device).split(","))


@given(jobs=waiting_jobs(), hosts=some_hosts(), data=st.data())
def test_a_plan_depends_on_nothing_but_its_input_whatever_the_order(
    jobs: list[WaitingJob], hosts: list[Host], data: st.DataObject
) -> None:
    shuffled = plan(data.draw(st.permutations(jobs)), data.draw(st.permutations(hosts)))

    assert plan(jobs, hosts) == plan(jobs, hosts) == shuffled


@given(jobs=waiting_jobs(), hosts=some_hosts())
def test_a_job_waits_only_for_a_reason_and_the_reason_names_who_is_in_the_way(
    jobs: list[WaitingJob], hosts: list[Host]
) -> None:
    known = {each.id for each in jobs} | {device.held_by for each in hosts for device in each.devices}
    for each in plan(jobs, hosts):
        if isinstance(each, Wait) and each.reason.startswith("waits for "):
            named = {int(part.partition(")")[0]) for part in each.reason.split("(job ")[1:]}
            assert named, each.reason
            assert named <= known - {each.job_id}
        elif isinstance(each, Wait):
            assert each.reason.startswith(("no registered host has ", "no host is registered", "every host with "))


@given(
    first=st.sampled_from(["cuda:0,cuda:1,cuda:2,cuda:3", "cuda:3,cuda:1", DeviceCount(count=4), DeviceCount(count=3)]),
    later=st.lists(DEVICE_LISTS, min_size=4, max_size=4),
    running=st.lists(st.sampled_from(["alpha", "beta"]), min_size=1, max_size=2, unique=True),
)
def test_a_job_that_can_run_starts_in_the_end_however_many_come_after_it(
    first: str | DeviceCount, later: list[str], running: list[str]
) -> None:
    """Every job runs for two or three rounds, and two more come in each round: nobody may be passed for ever."""
    hosts = [
        hold(host(name, cuda=4, first_id=10 * at), cuda1=900 + at)  # not one of them is free as a whole
        for at, name in enumerate(running)
    ]
    waiting = {1: job(1, first)}
    ends_in = {900: 1, 901: 2}
    for number in range(2, 82, 2):
        for more in (number, number + 1):
            waiting[more] = job(more, later[more % len(later)])
        ends_in = {holder: rounds - 1 for holder, rounds in ends_in.items() if rounds > 1}
        hosts = [hold_only(each, set(ends_in)) for each in hosts]
        for each in plan(list(waiting.values()), hosts):
            if isinstance(each, Start):
                if each.job_id == 1:
                    return
                del waiting[each.job_id]
                ends_in[each.job_id] = 2 + each.job_id % 2
                taken = {device.id for device in each.devices}
                hosts = [give(made, taken, each.job_id) for made in hosts]
    raise AssertionError("the first job never started")


def hold_only(host: Host, holders: set[int]) -> Host:
    devices = [replace(each, held_by=each.held_by if each.held_by in holders else None) for each in host.devices]
    return replace(host, devices=tuple(devices))


def give(host: Host, taken: set[int], holder: int) -> Host:
    devices = [replace(each, held_by=holder) if each.id in taken else each for each in host.devices]
    return replace(host, devices=tuple(devices))
