"""Which devices a request may use: by name, by kind, memory and model, and on which hosts."""

from collections.abc import Sequence

from jobs.device_count import DeviceCount
from jobs.planner.request import Request
from jobs.planner.view import Device, Host

ACCELERATORS = ("cuda", "mps")


def listed_names(request: Request) -> tuple[str, ...] | None:
    """The devices that a request names, in rank order; None where it leaves the choice to the planner."""
    if isinstance(request.device, DeviceCount) or request.device in ("auto", "cpu"):
        return None
    return tuple(request.device.split(","))


def pinned_host(request: Request) -> str | None:
    """The one host that a request allows, if it names one."""
    if request.host is None and isinstance(request.device, DeviceCount):
        return request.device.host
    return request.host


def has_accelerator(hosts: Sequence[Host]) -> bool:
    """Whether `auto` means an accelerator: some host has one, busy or closed or in quarantine as it may be."""
    return any(each.kind in ACCELERATORS for host in hosts for each in host.devices)


def fits(device: Device, request: Request, *, accelerated: bool) -> bool:
    """Whether a device is of the kind, memory and model that a request without names asks for.

    `accelerated` is what `has_accelerator` says of all hosts.
    """
    limits = request.device
    if isinstance(limits, DeviceCount):
        if device.kind != "cuda" or (device.memory_bytes or 0) < (limits.min_memory_gb or 0) * 1e9:
            return False
        return limits.name is None or limits.name.lower() in (device.model or "").lower()
    if limits == "auto" and accelerated:
        return device.kind in ACCELERATORS
    return device.kind == "cpu"


def in_order_of_name(devices: Sequence[Device]) -> list[Device]:
    """Devices in the order in which they are handed out: `cuda:2` comes before `cuda:10`."""
    return sorted(devices, key=lambda device: (len(device.name), device.name))


def suitable_devices(request: Request, host: Host, *, accelerated: bool) -> tuple[Device, ...]:
    """The devices of a host that a request may use, busy or not, in rank order; none where they are too few."""
    if pinned_host(request) not in (None, host.name):
        return ()
    usable = [device for device in devices_meant(request, host, accelerated=accelerated) if not device.quarantined]
    return tuple(usable) if len(usable) >= request.per_node else ()


def devices_meant(request: Request, host: Host, *, accelerated: bool) -> list[Device]:
    """The devices of a host that a request is for, busy or in quarantine or not, in rank order."""
    names = listed_names(request)
    if names is None:
        return in_order_of_name([each for each in host.devices if fits(each, request, accelerated=accelerated)])
    by_name = {device.name: device for device in host.devices if device.name in names}
    return [by_name[name] for name in names if name in by_name]


def suitable_hosts(request: Request, hosts: Sequence[Host]) -> list[tuple[Host, tuple[Device, ...]]]:
    """The hosts with enough devices for one node of a request, busy or closed or not, each with these devices."""
    accelerated = has_accelerator(hosts)
    found = [(host, suitable_devices(request, host, accelerated=accelerated)) for host in hosts]
    return sorted([each for each in found if each[1]], key=lambda each: each[0].name)
