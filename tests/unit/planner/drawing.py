"""Hosts, jobs and scenes, drawn small; and what a plan says of them."""

from collections.abc import Sequence
from typing import Any

from jobs.device_count import DeviceCount
from jobs.planner.plan import plan
from jobs.planner.request import Request
from jobs.planner.view import Decision, Device, Host, Policy, Preempt, RunningJob, Scene, Start, Wait, WaitingJob

NOW = 1_000_000.0


def host(
    name: str = "alpha", *, cuda: int = 2, cpu: int = 0, first_id: int = 1, closed: str | None = None, **device: Any
) -> Host:
    """A host with devices numbered from `first_id` on: `cuda:0` has that id."""
    names = [f"cuda:{index}" for index in range(cuda)] + [f"cpu:{index}" for index in range(cpu)]
    devices = [Device(first_id + at, each, each.partition(":")[0], **device) for at, each in enumerate(names)]
    return Host(name, tuple(devices), closed)


def ask(
    device: str | DeviceCount | int, *, ranks: int | None = None, nodes: int = 1, host: str | None = None
) -> Request:
    """A request for a list of devices, or for a number of them."""
    if isinstance(device, int):
        device = DeviceCount(count=device)
    if ranks is None:
        ranks = device.count if isinstance(device, DeviceCount) else len(device.split(","))
    return Request(device=device, per_node=ranks, nodes=nodes, host=host)


def job(number: int, request: Request | str | DeviceCount | int, **fields: Any) -> WaitingJob:
    """A waiting job of priority 50; of two, the one with the smaller number came first."""
    request = request if isinstance(request, Request) else ask(request)
    fields = {"priority": 50, "waits_from": NOW - 1000 + number} | fields
    return WaitingJob(id=number, request=request, **fields)


def run(number: int, *device_ids: int, **fields: Any) -> RunningJob:
    """A running job of priority 50 that has these devices."""
    return RunningJob(id=number, attempt=1, device_ids=device_ids, **({"priority": 50} | fields))


def scene(
    hosts: Sequence[Host] | Host, waiting: Sequence[WaitingJob], running: Sequence[RunningJob] = (), **fields: Any
) -> Scene:
    hosts = (hosts,) if isinstance(hosts, Host) else tuple(hosts)
    return Scene(**({"now": NOW} | fields), waiting=tuple(waiting), running=tuple(running), hosts=hosts)


def starts(decisions: Sequence[Decision]) -> dict[int, list[tuple[str, list[str]]]]:
    """Of each job that starts its nodes: the host, and its devices in rank order."""
    return {
        each.job_id: [(node.host_name, [device.name for device in node.devices]) for node in each.nodes]
        for each in decisions
        if isinstance(each, Start)
    }


def started(*args: Any, **fields: Any) -> set[int]:
    """The jobs that start in a scene."""
    return set(starts(plan(scene(*args, **fields))))


def waits(decisions: Sequence[Decision]) -> dict[int, Wait]:
    return {each.job_id: each for each in decisions if isinstance(each, Wait)}


def reasons(decisions: Sequence[Decision]) -> dict[int, str]:
    return {number: each.reason for number, each in waits(decisions).items()}


def preempted(decisions: Sequence[Decision]) -> dict[int, int]:
    """The jobs that are stopped, each with the one it is stopped for."""
    return {each.job_id: each.for_job for each in decisions if isinstance(each, Preempt)}


NEVER_MOVED = Policy(fair_share_s=0)
"""The line goes by time and priority alone."""
