"""What one plan of a long line takes, beside a plain loop that serves who came first and does nothing else."""

import random
import statistics
import time
from collections.abc import Callable

from benchmarks.report import Line, spread
from jobs.device_count import DeviceCount
from jobs.planner.plan import plan
from jobs.planner.view import Device, RunningJob, Scene, WaitingJob
from jobs.planning import without_collections
from jobs.simulation.fleet import make_fleet
from jobs.simulation.stream import StreamJob
from jobs.simulation.synthetic import Size, make_stream

SCENES = ((10_000, 1_000), (1_000, 10_000))
"""Jobs that wait, devices."""
FREE = 0.05
"""Share of the devices that have just come free; jobs have the others."""
DEVICES_PER_HOST = 8
TURNS = 7


def measure(say: Callable[[str], None]) -> list[Line]:
    """Time the planner and the loop in turns, on the same scenes."""
    lines = []
    for waiting, devices in SCENES:
        what = f"CPU time of one plan: {waiting:,} waiting jobs, {devices:,} devices"
        say(f"planning: {what} …")
        scene = make_scene(waiting, devices)
        planned, looped = [], []
        for turn in range(TURNS):
            planned.append(_ms(lambda: plan(scene)))  # noqa: B023  (called at once)
            looped.append(_ms(lambda: first_come_first_served(scene)))  # noqa: B023  (called at once)
            say(
                f"planning: turn {turn + 1} of {TURNS}: a plan takes {planned[-1]:.0f} ms, the loop {looped[-1]:.0f} ms"
            )
        ratio = statistics.median(planned) / statistics.median(looped)
        lines.append(Line(what, spread(planned, "ms"), f"first come, first served: {spread(looped, 'ms')}", ratio))
    return lines


def make_scene(waiting: int, devices: int) -> Scene:
    """Return a scene in the middle of a busy day: nearly all devices are held, and the jobs have waited for hours."""
    size = Size(waiting + devices, devices, DEVICES_PER_HOST, load=1.0)
    stream = make_stream(size, seed=0)
    now = stream[waiting].submitted_s
    in_line = tuple(_waiting(number, job) for number, job in enumerate(stream[:waiting], start=1))
    hosts = make_fleet(devices, devices_per_host=DEVICES_PER_HOST)
    free = set(random.Random(0).sample(range(1, devices + 1), int(devices * FREE)))
    running = []
    # Whole hosts, one after another, among jobs of every length.
    for number, (host, job) in enumerate(zip(hosts, stream[waiting:], strict=False), start=waiting + 1):
        held = tuple(device.id for device in host.devices if device.id not in free)
        ends = None if job.foretold_s is None else now + job.foretold_s
        running.append(RunningJob(number, 1, job.priority, held, job.user, job.labels, predicted_end=ends))
    return Scene(now=now, waiting=in_line, running=tuple(running), hosts=hosts)


def first_come_first_served(scene: Scene) -> list[tuple[int, list[list[Device]]]]:
    """Start every job that fits, in order of arrival: no reservations, no reasons, nothing foretold."""
    held = {device_id for job in scene.running for device_id in job.device_ids}
    started = []
    for job in sorted(scene.waiting, key=lambda each: (-each.priority, each.waits_from, each.id)):
        nodes: list[list[Device]] = []
        for host in scene.hosts:
            free = [device for device in host.devices if device.id not in held and _suits(job, device)]
            if len(free) >= job.request.per_node:
                nodes.append(free[: job.request.per_node])
            if len(nodes) == job.request.nodes:
                held.update(device.id for node in nodes for device in node)
                started.append((job.id, nodes))
                break
    return started


def _suits(job: WaitingJob, device: Device) -> bool:
    limits = job.request.device
    assert isinstance(limits, DeviceCount), "made-up jobs ask for a number of devices"
    return limits.min_memory_gb is None or (device.memory_bytes or 0) >= limits.min_memory_gb * 1e9


def _waiting(job_id: int, job: StreamJob) -> WaitingJob:
    return WaitingJob(job_id, job.priority, job.submitted_s, job.request, job.user, job.labels, job.limit_s)


def _ms(call: Callable[[], object]) -> float:
    """CPU time, in milliseconds: a plan waits for nothing, so what else the machine does is left out of it.

    Measured as the service plans, with Python's collector of cyclic garbage kept out.
    """
    with without_collections():
        began = time.process_time()
        call()
        return (time.process_time() - began) * 1000
