"""The fleet of a simulation, and who has which of its devices: no plan may hand one out twice."""

from collections.abc import Iterable, Sequence
from math import ceil

from jobs.device_count import DeviceCount
from jobs.planner.request import Request
from jobs.planner.view import Device, Host, Node

LARGE_MEMORY_BYTES = 141 * 10**9
MEMORY_BYTES = 80 * 10**9
LARGE_EVERY = 4
"""Every so many hosts of a fleet that is made up have the larger devices."""


class BrokenPlanError(AssertionError):
    """A plan that no planner may make: the message says which law it breaks, and for which job."""


def make_fleet(devices: int, *, devices_per_host: int) -> tuple[Host, ...]:
    """Return hosts with CUDA devices; the last has the rest where the numbers do not divide."""
    count = ceil(devices / devices_per_host)
    width = len(str(count))
    hosts = []
    for number in range(count):
        large = number % LARGE_EVERY == LARGE_EVERY - 1
        model, memory = ("H200", LARGE_MEMORY_BYTES) if large else ("H100", MEMORY_BYTES)
        first = number * devices_per_host
        ids = range(first, min(first + devices_per_host, devices))
        found = tuple(Device(1 + each, f"cuda:{each - first}", "cuda", model, memory) for each in ids)
        hosts.append(Host(f"host-{number + 1:0{width}}", found))
    return tuple(hosts)


class Fleet:
    """Hosts, and the job that has each device now."""

    def __init__(self, hosts: Sequence[Host]) -> None:
        self.hosts = tuple(hosts)
        self._devices = {device.id: (host.name, device) for host in hosts for device in host.devices}
        self._holders: dict[int, int] = {}

    @property
    def size(self) -> int:
        """Devices in all."""
        return len(self._devices)

    @property
    def held(self) -> int:
        """Devices that a job has now."""
        return len(self._holders)

    def take(self, job_id: int, request: Request, nodes: Sequence[Node]) -> tuple[int, ...]:
        """Give a job the devices that the plan says, and return their ids. Raises BrokenPlanError if it may not."""
        self._check_gang(job_id, request, nodes)
        for node in nodes:
            for device in node.devices:
                self._check_device(job_id, request, node.host_name, device)
                self._holders[device.id] = job_id
        return tuple(device.id for node in nodes for device in node.devices)

    def release(self, device_ids: Iterable[int]) -> None:
        """Take devices back."""
        for device_id in device_ids:
            del self._holders[device_id]

    def _check_gang(self, job_id: int, request: Request, nodes: Sequence[Node]) -> None:
        names = {node.host_name for node in nodes}
        if len(nodes) != request.nodes or len(names) != request.nodes:
            raise BrokenPlanError(f"job {job_id} wants {request.nodes} hosts and gets {sorted(names)}: a split gang")
        for node in nodes:
            if len({device.id for device in node.devices}) != request.per_node:
                count = len(node.devices)
                raise BrokenPlanError(
                    f"job {job_id} wants {request.per_node} devices on {node.host_name}, gets {count}"
                )
        if request.host is not None and names != {request.host}:
            raise BrokenPlanError(f"job {job_id} is to run on {request.host} and gets {sorted(names)}")

    def _check_device(self, job_id: int, request: Request, host_name: str, device: Device) -> None:
        if self._devices.get(device.id) != (host_name, device):
            raise BrokenPlanError(f"job {job_id} gets {device.name} of {host_name}, which has no such device")
        if (holder := self._holders.get(device.id)) is not None:
            raise BrokenPlanError(f"job {job_id} gets {device.name} of {host_name}, which job {holder} has: overbooked")
        wanted = request.device
        if isinstance(wanted, DeviceCount):
            small = wanted.min_memory_gb is not None and (device.memory_bytes or 0) < wanted.min_memory_gb * 1e9
            other = wanted.name is not None and wanted.name.lower() not in (device.model or "").lower()
            suits = device.kind == "cuda" and not small and not other
        elif wanted in ("cpu", "auto"):
            suits = wanted == "auto" or device.kind == "cpu"
        else:
            suits = device.name in wanted.split(",")
        if not suits or device.quarantined:
            raise BrokenPlanError(f"job {job_id} gets {device.name} of {host_name}, which is not what it asks for")
