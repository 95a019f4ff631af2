"""Reasons: what a waiting job is told, in words that time alone does not change."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from jobs.device_count import DeviceCount
from jobs.planner.matching import devices_meant, has_accelerator, listed_names, pinned_host, suitable_hosts
from jobs.planner.request import Request
from jobs.planner.slots import Slot, first_unforeseeable
from jobs.planner.view import Holder, Host, WaitingJob

MOST_NAMED = 8
"""So many devices and their holders are named."""


def why_never(request: Request, hosts: Sequence[Host]) -> str | None:
    """Return why no registered hosts could ever run this, or None if they could once they are open and free."""
    if not hosts:
        return "no host is registered yet"
    suitable = suitable_hosts(request, hosts)
    if len(suitable) >= request.nodes:
        return None
    withheld = _withheld(request, hosts)
    if withheld and len(suitable) + len(withheld) >= request.nodes:
        in_quarantine = _in_quarantine(withheld)
        is_named = listed_names(request) is not None and request.nodes == 1
        return in_quarantine if is_named else f"needs {wanted(request)}, and {in_quarantine}"
    if not suitable:
        return f"no registered host has {_on_one_host(request)}"
    return f"needs {request.nodes} hosts with {_on_one_host(request)}, and there is only {_listed(suitable)}"


def wanted(request: Request) -> str:
    """Say in words what a request asks for."""
    each = _on_one_host(request)
    return each if request.nodes == 1 else f"{each} on each of {request.nodes} hosts"


def no_host(request: Request, hosts: Sequence[Host], resumes_on: frozenset[str] | None, resume_note: str | None) -> str:
    """Say why a job can not run on any hosts that are open now."""
    never = why_never(request, hosts)
    if never is not None:
        return never
    open_hosts = [host for host in hosts if host.closed is None and (resumes_on is None or host.name in resumes_on)]
    withheld = _withheld(request, open_hosts)
    if withheld:
        others = _no_open_host(request, hosts, resumes_on, resume_note, every="every other")
        return f"{_in_quarantine(withheld)}; {others}"
    return _no_open_host(request, hosts, resumes_on, resume_note)


def no_open_host(request: Request, resume_note: str | None) -> str:
    """Say that a job can not run on any hosts that are open now, and no more."""
    each = _on_one_host(request)
    if request.nodes == 1:
        return _with_note(f"no host that is open has {each}", resume_note)
    return _with_note(f"needs {request.nodes} hosts with {each}, and fewer are open", resume_note)


def _no_open_host(
    request: Request,
    hosts: Sequence[Host],
    resumes_on: frozenset[str] | None,
    resume_note: str | None,
    *,
    every: str = "every",
) -> str:
    suitable = [host for host, _devices in suitable_hosts(request, hosts)]
    if resumes_on is not None:
        readers = [host for host in suitable if host.name in resumes_on]
        note = resume_note or f"its checkpoint can be read only on {_and(sorted(resumes_on)) or 'hosts that are gone'}"
        closed = [f"{host.name} is {host.closed}" for host in readers if host.closed is not None]
        if closed:
            return f"{note}, and {_and(closed)}"
        if len(readers) < request.nodes:
            few = "no host" if request.nodes == 1 else f"fewer than {request.nodes} hosts"
            return f"{note}, and {few} with {_on_one_host(request)} can read it"
    closed = [f"{host.name} is {host.closed}" for host in suitable if host.closed is not None]
    if len(closed) < len(suitable):
        return f"needs {request.nodes} hosts with {_on_one_host(request)}, but {_and(closed)}"
    why = {host.closed for host in suitable}
    if len(why) == 1:
        return f"{every} host with {_on_one_host(request)} is {why.pop()}"
    return f"no host with {_on_one_host(request)} is open: {_and(closed)}"


def resting(until: float) -> str:
    """Say that a job is tried again later; `until` in seconds since the epoch."""
    return f"rests until {datetime.fromtimestamp(until, UTC):%Y-%m-%d %H:%M:%S} UTC, since its last attempt was lost"


def far_back(request: Request, resume_note: str | None) -> str:
    """Say what a job waits for that has many before it: who they are changes all the time."""
    return _with_note(f"waits for {wanted(request)}, with many jobs before it in the line", resume_note)


def in_the_way(slots: Sequence[Slot], hosts: Sequence[Host], job: WaitingJob) -> tuple[str, tuple[Holder, ...]]:
    """Say who has, or comes before for, the devices that a job waits for, and return the first of these."""
    parts: dict[str, list[str]] = {}
    holders = []
    busy = [slot for slot in slots if not slot.is_loose]
    for slot in busy[:MOST_NAMED]:
        host = hosts[slot.host].name
        job_id = slot.holder if slot.is_taken else slot.kept_for
        assert job_id is not None, "a device that is not loose has a job, or is kept for one"
        who = _holder(slot, job) if slot.is_taken else f"set aside for job {job_id}"
        parts.setdefault(host, []).append(f"{slot.device.name} ({who})")
        holders.append(Holder(host, slot.device.name, job_id))
    listed = [", ".join(devices) + f" on {host}" for host, devices in parts.items()]
    if len(busy) > MOST_NAMED:
        host = hosts[busy[MOST_NAMED - 1].host].name
        listed[-1] = ", ".join(parts[host]) + f" and more on {host}"
    reason = f"waits for {'; '.join(listed)}"
    unknown = first_unforeseeable(slots)
    if unknown is not None:
        reason += f"; how long job {unknown} runs is not known"
    return _with_note(reason, job.resume_note), tuple(holders)


def _holder(slot: Slot, job: WaitingJob) -> str:
    """The job that has a device, what becomes of it, and who comes next."""
    who = f"job {slot.holder}"
    if slot.stopped_for is not None:
        whom = "it" if slot.stopped_for == job.id else f"job {slot.stopped_for}"
        who += f", which {'would be' if job.is_supposed else 'is'} stopped for {whom}"
    elif slot.is_leaving:
        who += ", which is stopping"
    return who if slot.kept_for in (None, slot.stopped_for) else f"{who}, then job {slot.kept_for}"


def _withheld(request: Request, hosts: Sequence[Host]) -> dict[str, list[str]]:
    """By host that would have enough devices but for those in quarantine, which these are."""
    found, accelerated = {}, has_accelerator(hosts)
    for host in hosts:
        if not any(device.quarantined for device in host.devices) or pinned_host(request) not in (None, host.name):
            continue
        meant = devices_meant(request, host, accelerated=accelerated)
        quarantined = [device.name for device in meant if device.quarantined]
        if len(meant) >= request.per_node > len(meant) - len(quarantined):
            found[host.name] = quarantined
    return found


def _in_quarantine(withheld: Mapping[str, Sequence[str]]) -> str:
    devices = [f"{', '.join(names[:MOST_NAMED])} on {host}" for host, names in sorted(withheld.items())[:MOST_NAMED]]
    are, them = ("is", "it") if sum(map(len, withheld.values())) == 1 else ("are", "them")
    return f"{_and(devices)} {are} in quarantine (an operator releases {them}: rankzero hosts release)"


def _on_one_host(request: Request) -> str:
    device = request.device
    if isinstance(device, DeviceCount):
        limits = [
            f"of at least {device.min_memory_gb} GB" if device.min_memory_gb else "",
            f"named {device.name!r}" if device.name else "",
        ]
        asked = " ".join([f"{device.count} CUDA {_plural('device', device.count)}", *filter(None, limits)])
    elif device == "cpu":
        asked = f"{request.per_node} CPU {_plural('slot', request.per_node)}"
    else:
        asked = device.replace(",", " and ") if device != "auto" else "a device"
    pinned = pinned_host(request)
    return f"{asked} on {pinned}" if pinned is not None else asked


def _plural(noun: str, number: int) -> str:
    return noun if number == 1 else f"{noun}s"


def _listed(hosts: Iterable[tuple[Host, object]]) -> str:
    return _and([host.name for host, _devices in hosts])


def _and(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


def _with_note(reason: str, note: str | None) -> str:
    return f"{reason}; {note}" if note else reason
