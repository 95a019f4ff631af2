"""Hosts as the API shows them: with their devices, who holds each, and what runs there."""

from sqlalchemy.orm import Session

from api.fleet import Device, Holder, Host
from jobs.database import now
from jobs.errors import NotFoundError
from jobs.store import hosts, maintenance, scenes


def view_hosts(session: Session) -> list[Host]:
    """Return every host, by name."""
    at = now(session)
    by_host: dict[str, list[Device]] = {}
    for row, job_id, attempt in hosts.devices(session):
        held_by = None if job_id is None or attempt is None else Holder(job_id=job_id, attempt=attempt)
        device = Device(
            name=row.name,
            driver_index=row.driver_index,
            uuid=row.uuid,
            kind=row.kind,
            model=row.model,
            simulated=row.simulated,
            memory_bytes=row.memory_bytes,
            held_by=held_by,
            losses=row.losses,
            quarantined_at=row.quarantined_at,
            quarantine_reason=row.quarantine_reason,
        )
        by_host.setdefault(row.host_name, []).append(device)
    running: dict[str, list[Holder]] = {}
    for host_name, job_id, attempt in maintenance.running(session):
        running.setdefault(host_name, []).append(Holder(job_id=job_id, attempt=attempt))
    return [
        Host(
            name=host.name,
            alive=hosts.is_alive(host, at),
            closed=scenes.why_closed(host, at),
            registered_at=host.registered_at,
            heartbeat_at=host.heartbeat_at,
            drained_at=host.drained_at,
            drain_note=host.drain_note,
            address=host.address,
            free_bytes=host.free_bytes,
            running=running.get(host.name, []),
            devices=by_host.get(host.name, []),
        )
        for host in hosts.all_hosts(session)
    ]


def view_host(session: Session, name: str) -> Host:
    """Return a host. Raises NotFoundError."""
    for host in view_hosts(session):
        if host.name == name:
            return host
    raise NotFoundError(f"no host {name!r}")


def view_device(session: Session, host_name: str, name: str) -> Device:
    """Return a device of a host. Raises NotFoundError."""
    for device in view_host(session, host_name).devices:
        if device.name == name:
            return device
    raise NotFoundError(f"host {host_name!r} has no device {name!r}")
