"""The scene that a plan is made from, as the database has it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from jobs.database import now
from jobs.planner.view import OUT_OF_CONTACT, Device, Host, Policy, Scene
from jobs.settings import Settings, get_settings
from jobs.store import hosts, lines, quotas, roots, running, usage, waiting
from jobs.store.reach import Readers
from jobs.store.roots import Allowances
from jobs.store.transitions import changed
from jobs.tables import DeviceRow, Job
from jobs.tables import Host as HostRow


@dataclass(frozen=True, slots=True)
class Sight:
    """A scene, with what else was read of the jobs that wait in it."""

    scene: Scene
    said: dict[int, lines.Said]
    """What the database has of each one's place in the line."""
    unreadable: dict[int, str]
    """Queued jobs whose spec is of another version, and why it cannot be read: those of which that is news. They stay
    where they are."""
    unstored: dict[int, str]
    """The request of each job that was stored before requests were: to be stored, so that it is read once."""
    readers: Readers
    allowances: Allowances


def read(session: Session) -> Sight:
    """Return all that the next plan is made from. Writes nothing."""
    at = now(session)
    rows = hosts.all_hosts(session)
    readers = Readers(rows, [host.name for host in rows if hosts.is_alive(host, at)], at)
    limits = quotas.read(session)
    allowances = Allowances(roots.by_host(session))
    queue = waiting.read(
        session, at, readers, allowances, with_labels=any(quota.account[0] == "label" for quota in limits)
    )
    scene = Scene(
        now=at.timestamp(),
        waiting=tuple(queue.jobs),
        running=tuple(running.read(session, at)),
        hosts=tuple(_view_hosts(session, rows, at)),
        quotas=limits,
        usage=usage.read(session, at),
        policy=policy(get_settings()),
    )
    return Sight(scene, queue.said, queue.unreadable, queue.unstored, readers, allowances)


def policy(settings: Settings) -> Policy:
    """Return the planner's part of the settings."""
    return Policy(
        ageing_s=settings.ageing_s,
        fair_share_s=settings.fair_share_s,
        patience_s=settings.preemption_patience_s,
    )


def catch_up(session: Session, sight: Sight) -> None:
    """Store what reading the scene brought to light: requests that were not stored yet, specs of another version."""
    for job_id, request in sight.unstored.items():
        changed(session, update(Job).where(Job.id == job_id).values(request=request))
    for job_id, error in sight.unreadable.items():
        lines.note_unreadable(session, job_id, error)


def distrust_request(session: Session, job_id: int, error: ValueError) -> None:
    """Drop the stored request of a job whose spec cannot be read: from now on the spec decides, also in the line."""
    changed(session, update(Job).where(Job.id == job_id).values(request=None))
    lines.note_unreadable(session, job_id, str(error))


def view_hosts(session: Session, at: datetime) -> list[Host]:
    """Return all hosts as the planner sees them, at the database's time `at`."""
    return _view_hosts(session, hosts.all_hosts(session), at)


def why_closed(host: HostRow, at: datetime) -> str | None:
    """Return why a host gets no new jobs at the database's time `at`, in words that follow "it is"; else None."""
    if not hosts.is_alive(host, at):
        return OUT_OF_CONTACT
    if host.drained_at is not None:
        return f"drained: {host.drain_note}" if host.drain_note else "drained"
    if host.fault is not None:
        return host.fault
    if host.free_bytes is not None and host.min_free_bytes is not None and host.free_bytes < host.min_free_bytes:
        left, least = host.free_bytes / 1e9, host.min_free_bytes / 1e9
        return f"short of disk space: {left:.1f} GB left on its run root, below {least:.1f} GB"
    return None


def _view_hosts(session: Session, rows: Sequence[HostRow], at: datetime) -> list[Host]:
    by_host: dict[str, list[Device]] = {}
    for row in session.execute(_DEVICES):
        device = Device(row.id, row.name, row.kind, row.model, row.memory_bytes, row.quarantined_at is not None)
        by_host.setdefault(row.host_name, []).append(device)
    return [Host(host.name, tuple(by_host.get(host.name, ())), why_closed(host, at)) for host in rows]


_DEVICES = (
    select(
        DeviceRow.host_name,
        DeviceRow.quarantined_at,
        DeviceRow.id,
        DeviceRow.name,
        DeviceRow.kind,
        DeviceRow.model,
        DeviceRow.memory_bytes,
    )
    .where(DeviceRow.present)
    .order_by(DeviceRow.host_name, DeviceRow.id)
)
