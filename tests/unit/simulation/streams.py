"""Streams and simulations that the tests make."""

from collections.abc import Sequence
from itertools import count
from typing import Any

from jobs.device_count import DeviceCount
from jobs.planner.request import Request
from jobs.simulation.fleet import make_fleet
from jobs.simulation.run import Rules, Simulation
from jobs.simulation.stream import StreamJob


def job(submitted_s: float, runs_s: float, *, devices: int = 1, nodes: int = 1, **fields: Any) -> StreamJob:
    """A job of a stream; what is not named is as by default."""
    of_request = {name: fields.pop(name) for name in ("preemptible", "time_limit_s") if name in fields}
    request = Request(device=DeviceCount(count=devices), per_node=devices, nodes=nodes, **of_request)
    return StreamJob(submitted_s=submitted_s, runs_s=runs_s, request=request, **fields)


def simulate(stream: Sequence[StreamJob], *, devices: int, per_host: int = 8, rules: Rules | None = None) -> Simulation:
    """Run a stream to its end. A plan takes one second of the clock that measures it."""
    seconds = count()
    hosts = make_fleet(devices, devices_per_host=per_host)
    simulation = Simulation(stream, hosts, rules or Rules(tick_s=1), cpu_clock=lambda: float(next(seconds)))
    simulation.run()
    return simulation
