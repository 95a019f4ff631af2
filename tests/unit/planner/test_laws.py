"""What no plan ever does, in scenes drawn at random."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.device_count import DeviceCount
from jobs.planner.plan import plan
from jobs.planner.request import Request
from jobs.planner.view import Host, Policy, Preempt, Quota, Reservation, RunningJob, Scene, WaitingJob
from tests.unit.planner import laws
from tests.unit.planner.drawing import NOW, host

# Hosts have few devices and jobs want many, so that most plans have something to decide.

DEVICE_LISTS = st.lists(st.integers(0, 3), min_size=1, max_size=4, unique=True).map(
    lambda indices: ",".join(f"cuda:{index}" for index in indices)
)
COUNTS = st.builds(
    DeviceCount,
    count=st.integers(1, 4),
    host=st.none(),
    min_memory_gb=st.none() | st.sampled_from([20.0, 60.0]),
    name=st.none() | st.just("A100"),
)
NAMES = ["a", "b", "c"]
MAYBE_SOON = st.none() | st.sampled_from([1.0, 10.0, 60.0, 1000.0])
USERS = st.sampled_from([None, "ann", "bob"])
LABELS = st.sampled_from([{}, {"team": "vision"}, {"team": "speech", "kind": "sweep"}])


@st.composite
def requests(draw: st.DrawFn) -> Request:
    device = draw(st.one_of(DEVICE_LISTS, COUNTS, COUNTS, st.sampled_from(["cpu", "auto", "mps"])))
    if isinstance(device, DeviceCount):
        per_node = device.count
    else:
        per_node = draw(st.integers(1, 3)) if device == "cpu" else len(device.split(","))
    pinned = draw(st.none() | st.none() | st.sampled_from([*NAMES, "nowhere"]))
    nodes = draw(st.sampled_from([1, 1, 1, 2, 3])) if pinned is None else 1
    return Request(device=device, per_node=per_node, nodes=nodes, host=pinned)


@st.composite
def some_hosts(draw: st.DrawFn) -> list[Host]:
    hosts = []
    for at, name in enumerate(draw(st.lists(st.sampled_from(NAMES), max_size=3, unique=True))):
        made = host(name, cuda=draw(st.integers(0, 4)), cpu=draw(st.integers(0, 3)), first_id=100 * at + 1)
        devices = [
            replace(
                each,
                quarantined=draw(st.sampled_from([False, False, False, True])),
                memory_bytes=draw(st.sampled_from([None, 40_000_000_000, 80_000_000_000])),
                model=draw(st.sampled_from([None, "NVIDIA A100"])),
            )
            for each in made.devices
        ]
        hosts.append(Host(name, tuple(devices), draw(st.sampled_from([None, None, None, "out of contact"]))))
    return hosts


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    hosts = draw(some_hosts())
    free = draw(st.permutations([device.id for each in hosts for device in each.devices]))
    every = sorted(free)
    running = []
    for number in range(900, 900 + draw(st.integers(0, 6))):
        size = draw(st.integers(1, 4))
        held, free = free[:size], free[size:]
        if not held:
            break
        running.append(
            RunningJob(
                id=number,
                attempt=draw(st.integers(1, 3)),
                priority=draw(st.sampled_from([0, 40, 60])),
                device_ids=tuple(held),
                user=draw(USERS),
                labels=draw(LABELS),
                preemptible=draw(st.booleans()),
                saved_at=NOW - draw(st.integers(0, 100)),
                predicted_end=draw(MAYBE_SOON.map(lambda soon: soon and NOW + soon - 5)),
                is_stopping=draw(st.sampled_from([False, False, True])),
            )
        )
    waiting = [
        draw(waiting_jobs(number, every)) for number in draw(st.lists(st.integers(1, 50), max_size=8, unique=True))
    ]
    quotas = [
        Quota(account, draw(st.none() | st.integers(0, 6)), draw(st.sampled_from([0.5, 1.0, 2.0])))
        for account in draw(
            st.lists(
                st.sampled_from([("user", "*"), ("user", "ann"), ("user", ""), ("label", "team=vision")]),
                max_size=3,
                unique=True,
            )
        )
    ]
    usage = draw(st.dictionaries(st.sampled_from([("user", "ann"), ("user", "bob")]), st.floats(0, 1e6), max_size=2))
    policy = Policy(ageing_s=draw(st.sampled_from([1.0, 600.0])), reservations=draw(st.sampled_from([1, 2, 64])))
    return Scene(NOW, tuple(waiting), tuple(running), tuple(hosts), tuple(quotas), usage, policy)


@st.composite
def waiting_jobs(draw: st.DrawFn, number: int, device_ids: list[int]) -> WaitingJob:
    reservation = None
    had_one: bool = draw(st.booleans())
    if device_ids and had_one:
        reservation = Reservation(
            tuple(draw(st.lists(st.sampled_from(device_ids), min_size=1, max_size=4, unique=True))),
            draw(MAYBE_SOON.map(lambda soon: soon and NOW + soon - 5)),
            draw(st.booleans()),
        )
    return WaitingJob(
        id=number,
        priority=draw(st.sampled_from([0, 50, 100])),
        waits_from=NOW - draw(st.integers(0, 5000)),
        request=draw(requests()),
        user=draw(USERS),
        labels=draw(LABELS),
        duration_s=draw(MAYBE_SOON),
        not_before=draw(st.sampled_from([None, None, NOW - 1, NOW + 9])),
        reservation=reservation,
        resumes_on=draw(st.none() | st.frozensets(st.sampled_from(NAMES))),
        resume_note=None,
    )


@given(scene=scenes())
def test_no_plan_breaks_a_law(scene: Scene) -> None:
    laws.check(scene, plan(scene))


@settings(max_examples=50)
@given(scene=scenes(), data=st.data())
def test_a_plan_depends_on_nothing_but_the_scene_whatever_its_order(scene: Scene, data: st.DataObject) -> None:
    shuffled = replace(
        scene,
        waiting=tuple(data.draw(st.permutations(scene.waiting))),
        running=tuple(data.draw(st.permutations(scene.running))),
        hosts=tuple(
            replace(each, devices=tuple(data.draw(st.permutations(each.devices))))
            for each in data.draw(st.permutations(scene.hosts))
        ),
        quotas=tuple(data.draw(st.permutations(scene.quotas))),
    )

    assert plan(scene) == plan(scene) == plan(shuffled)


@settings(max_examples=50)
@given(scene=scenes())
def test_later_jobs_change_nothing_for_earlier_ones(scene: Scene) -> None:
    whole = plan(scene)
    for length in range(len(whole)):
        earlier = {each.job_id for each in whole[:length] if not isinstance(each, Preempt)}
        told = plan(replace(scene, waiting=tuple(job for job in scene.waiting if job.id in earlier)))
        assert told == whole[: len(told)]
