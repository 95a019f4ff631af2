"""The planner: a pure function from jobs, hosts and leases to what happens next.

Order: higher priority first, then first come first served. A job starts only with all of its devices at once, on one
host. A job that cannot start yet keeps its place: the devices it waits for are set aside, so that no later job takes
them away from it; later jobs that want other devices pass.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from jobs.spec import DeviceCount

ACCELERATORS = ("cuda", "mps")


@dataclass(frozen=True)
class Device:
    """A device as the planner sees it."""

    id: int
    name: str
    """`cuda:N`, `mps`, or `cpu:N` for a CPU slot."""
    kind: str
    model: str | None = None
    memory_bytes: int | None = None
    held_by: int | None = None
    """Job that has a live lease on it."""


@dataclass(frozen=True)
class Host:
    """A host as the planner sees it."""

    name: str
    devices: tuple[Device, ...]
    alive: bool = True
    """Its worker has reported lately."""


@dataclass(frozen=True)
class WaitingJob:
    """A queued job as the planner sees it."""

    id: int
    priority: int
    device: str | DeviceCount
    device_count: int
    """How many devices it starts with."""
    reason: str | None = None
    """What it waited for when it was last planned."""


@dataclass(frozen=True)
class Start:
    """The job starts on these devices now."""

    job_id: int
    host_name: str
    devices: tuple[Device, ...]
    """In rank order."""


@dataclass(frozen=True)
class Wait:
    """The job stays queued, for this reason."""

    job_id: int
    reason: str


Decision = Start | Wait


@dataclass
class _Board:
    """Who has what while one plan is being made."""

    held: dict[int, int] = field(default_factory=dict)
    """Job that has, or is first in line for, a device, by device id."""

    def is_free(self, device: Device) -> bool:
        return device.held_by is None and device.id not in self.held

    def holder(self, device: Device) -> int | None:
        return device.held_by if device.held_by is not None else self.held.get(device.id)


def plan(jobs: Sequence[WaitingJob], hosts: Sequence[Host]) -> list[Decision]:
    """Decide for every waiting job whether it starts now, and where, or what it waits for."""
    board = _Board()
    in_order = sorted(jobs, key=lambda job: (-job.priority, job.id))
    by_name = sorted(hosts, key=lambda host: host.name)
    return [_place(job, by_name, board) for job in in_order]


def can_ever_run(device: str | DeviceCount, device_count: int, hosts: Sequence[Host]) -> str | None:
    """Return why no registered host could ever run this, or None if one could once it is alive and free."""
    if not hosts:
        return "no host is registered yet"
    if any(_candidates(device, device_count, host, hosts) for host in hosts):
        return None
    return f"no registered host has {_wanted(device, device_count)}"


def _place(job: WaitingJob, hosts: Sequence[Host], board: _Board) -> Decision:
    alive = [host for host in hosts if host.alive]
    options = [(host, found) for host in alive if (found := _candidates(job.device, job.device_count, host, alive))]
    for host, candidates in options:
        chosen = _choose(candidates, job, board)
        if chosen:
            board.held.update({device.id: job.id for device in chosen})
            return Start(job.id, host.name, chosen)
    if not options:
        impossible = can_ever_run(job.device, job.device_count, hosts)
        return Wait(job.id, impossible or f"every host with {_wanted(job.device, job.device_count)} is out of contact")
    host, candidates = max(options, key=lambda option: sum(board.is_free(device) for device in option[1]))
    wanted = candidates if _is_exact(job.device) else _soonest(candidates, job, board)
    reason = _reason(host, wanted, board)
    for device in wanted:
        board.held.setdefault(device.id, job.id)
    return Wait(job.id, reason)


def _candidates(device: str | DeviceCount, device_count: int, host: Host, hosts: Sequence[Host]) -> tuple[Device, ...]:
    """The devices of a host that the job may use, busy or not; empty where they could never be enough."""
    if isinstance(device, DeviceCount):
        found = tuple(each for each in host.devices if _matches(each, device, host))
    elif device == "auto":
        anywhere = any(each.kind in ACCELERATORS for other in hosts for each in other.devices)
        kinds = ACCELERATORS if anywhere else ("cpu",)
        found = tuple(each for each in host.devices if each.kind in kinds)
    elif device == "cpu":
        found = tuple(each for each in host.devices if each.kind == "cpu")
    else:
        by_name = {each.name: each for each in host.devices}
        found = tuple(by_name[name] for name in device.split(",") if name in by_name)
    return found if len(found) >= device_count else ()


def _matches(device: Device, wanted: DeviceCount, host: Host) -> bool:
    if device.kind != "cuda" or wanted.host not in (None, host.name):
        return False
    if wanted.min_memory_gb is not None and (device.memory_bytes or 0) < wanted.min_memory_gb * 1e9:
        return False
    return wanted.name is None or wanted.name.lower() in (device.model or "").lower()


def _choose(candidates: tuple[Device, ...], job: WaitingJob, board: _Board) -> tuple[Device, ...]:
    free = tuple(device for device in candidates if board.is_free(device))
    return free[: job.device_count] if len(free) >= job.device_count else ()


def _soonest(candidates: tuple[Device, ...], job: WaitingJob, board: _Board) -> tuple[Device, ...]:
    """The free ones first, then those that only a running job holds, then those others are in line for."""
    return tuple(
        sorted(candidates, key=lambda device: (not board.is_free(device), device.id in board.held, device.id))[
            : job.device_count
        ]
    )


def _is_exact(device: str | DeviceCount) -> bool:
    return isinstance(device, str) and device not in ("auto", "cpu")


def _reason(host: Host, wanted: tuple[Device, ...], board: _Board) -> str:
    busy = [f"{device.name} (job {board.holder(device)})" for device in wanted if not board.is_free(device)]
    return f"waits for {', '.join(busy[:8])}{' and more' if len(busy) > 8 else ''} on {host.name}"


def _wanted(device: str | DeviceCount, device_count: int) -> str:
    if isinstance(device, DeviceCount):
        limits = [
            f"on {device.host}" if device.host else "",
            f"of at least {device.min_memory_gb} GB" if device.min_memory_gb else "",
            f"named {device.name!r}" if device.name else "",
        ]
        return " ".join([f"{device.count} CUDA devices", *filter(None, limits)])
    if device == "cpu":
        return f"{device_count} CPU slots"
    return device.replace(",", " and ") if device != "auto" else "a device"
