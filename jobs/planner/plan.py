"""The plan: who starts now and where, who waits for whom, who is stopped for whom."""

from collections.abc import Sequence

from jobs.device_count import DeviceCount
from jobs.planner.request import Request
from jobs.planner.view import Decision, Device, Holder, Host, Node, Scene, Start, Wait, WaitingJob

ACCELERATORS = ("cuda", "mps")


def plan(scene: Scene) -> list[Decision]:
    """Decide for every waiting job whether it starts now, and where, or what it waits for."""
    held = {device_id: job.id for job in scene.running for device_id in job.device_ids}
    in_order = sorted(scene.waiting, key=lambda job: (_line_key(job, scene), job.id))
    by_name = sorted(scene.hosts, key=lambda host: host.name)
    return [_place(job, by_name, held, scene) for job in in_order]


def why_never(request: Request, hosts: Sequence[Host]) -> str | None:
    """Return why no registered hosts could ever run this, or None if they could once they are open and free."""
    if not hosts:
        return "no host is registered yet"
    if sum(bool(_candidates(request, host, hosts)) for host in hosts) >= request.nodes:
        return None
    return f"no registered host has {wanted(request)}"


def wanted(request: Request) -> str:
    """Say in words what a request asks for."""
    device = request.device
    if isinstance(device, DeviceCount):
        limits = [
            f"on {device.host}" if device.host else "",
            f"of at least {device.min_memory_gb} GB" if device.min_memory_gb else "",
            f"named {device.name!r}" if device.name else "",
        ]
        return " ".join([f"{device.count} CUDA devices", *filter(None, limits)])
    if device == "cpu":
        return f"{request.per_node} CPU slots"
    return device.replace(",", " and ") if device != "auto" else "a device"


def _line_key(job: WaitingJob, scene: Scene) -> float:
    return job.waits_from - job.priority * scene.policy.ageing_s


def _place(job: WaitingJob, hosts: Sequence[Host], held: dict[int, int], scene: Scene) -> Decision:
    line_key = _line_key(job, scene)
    open_hosts = [host for host in hosts if host.closed is None]
    options = [(host, found) for host in open_hosts if (found := _candidates(job.request, host, open_hosts))]
    free = [
        Node(host.name, chosen)
        for host, found in options
        if len(chosen := tuple(device for device in found if device.id not in held)[: job.request.per_node])
        == job.request.per_node
    ][: job.request.nodes]
    if len(free) == job.request.nodes:
        held.update({device.id: job.id for node in free for device in node.devices})
        return Start(job.id, tuple(free))
    if not options:
        never = why_never(job.request, hosts)
        return Wait(job.id, never or f"every host with {wanted(job.request)} is out of contact", line_key)
    host, found = max(options, key=lambda option: sum(device.id not in held for device in option[1]))
    soonest = sorted(found, key=lambda device: (device.id in held, device.id))[: job.request.per_node]
    busy = tuple(Holder(host.name, device.name, held[device.id]) for device in soonest if device.id in held)
    for device in soonest:
        held.setdefault(device.id, job.id)
    listed = ", ".join(f"{each.device} (job {each.job_id})" for each in busy[:8])
    return Wait(job.id, f"waits for {listed} on {host.name}", line_key, waits_for=busy[:8])


def _candidates(request: Request, host: Host, hosts: Sequence[Host]) -> tuple[Device, ...]:
    """The devices of a host that the job may use, busy or not; empty where they could never be enough."""
    if request.host not in (None, host.name):
        return ()
    usable = [device for device in host.devices if not device.quarantined]
    device = request.device
    if isinstance(device, DeviceCount):
        found = tuple(each for each in usable if _matches(each, device))
    elif device == "auto":
        anywhere = any(each.kind in ACCELERATORS for other in hosts for each in other.devices)
        kinds = ACCELERATORS if anywhere else ("cpu",)
        found = tuple(each for each in usable if each.kind in kinds)
    elif device == "cpu":
        found = tuple(each for each in usable if each.kind == "cpu")
    else:
        by_name = {each.name: each for each in usable}
        found = tuple(by_name[name] for name in device.split(",") if name in by_name)
    return found if len(found) >= request.per_node else ()


def _matches(device: Device, limits: DeviceCount) -> bool:
    if device.kind != "cuda":
        return False
    if limits.min_memory_gb is not None and (device.memory_bytes or 0) < limits.min_memory_gb * 1e9:
        return False
    return limits.name is None or limits.name.lower() in (device.model or "").lower()
