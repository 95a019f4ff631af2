"""Maintenance: what an operator does with hosts (drain, take back, remove) and with devices (quarantine, release)."""

from collections.abc import Sequence

from sqlalchemy import Row, func, select, update
from sqlalchemy.orm import Session

from jobs.database import lock_planning, now
from jobs.errors import NotFoundError, StateConflictError
from jobs.states import StopOrder
from jobs.store import attempts, feed, hosts
from jobs.store.transitions import changed
from jobs.tables import DeviceRow, Host, Placement


def drain(session: Session, name: str, *, note: str | None = None, evict: bool = False) -> None:
    """Give a host no new jobs until it is taken back; those that run there go on, or save and stop with `evict`.

    A host that is drained already keeps the time since when. Raises NotFoundError.
    """
    # With the planners' lock: no plan that saw the host open is still to be written, so that `evict` finds all.
    lock_planning(session)
    host = get(session, name)
    host.drained_at = host.drained_at or now(session)
    host.drain_note = note
    session.flush()
    feed.tell_host(session, name, "drained")
    if evict:
        _evict(session, name, note=note)


def take_back(session: Session, name: str) -> None:
    """Let a drained host have jobs again; one that is not drained stays as it is. Raises NotFoundError."""
    host = get(session, name)
    if host.drained_at is not None:
        host.drained_at = host.drain_note = None
        session.flush()
        feed.tell_host(session, name, "undrained")


def remove(session: Session, name: str) -> None:
    """Forget a host that is gone for good: it is listed no more, and no job waits for its devices.

    Its rows stay, for the history of its jobs, and a worker that registers under its name brings it back. Raises
    NotFoundError, and StateConflictError while its worker reports or a part of an attempt has not ended there.
    """
    lock_planning(session)
    host = get(session, name)
    at = now(session)
    if hosts.is_alive(host, at):
        raise StateConflictError(f"host {name!r} has a worker that reports; stop that first, or drain the host instead")
    open_ = select(Placement.job_id).where(Placement.host_name == name, Placement.ended_at.is_(None))
    job_id = session.scalars(open_.order_by(Placement.job_id)).first()
    if job_id is not None:
        message = f"job {job_id} may still run on host {name!r}; try again once its leases have run out"
        raise StateConflictError(message)
    host.removed_at = at
    host.drained_at = host.drain_note = None
    changed(session, update(DeviceRow).where(DeviceRow.host_name == name).values(present=False))
    feed.tell_host(session, name, "removed", at=at)


def quarantine(session: Session, name: str, device: str, *, reason: str) -> None:
    """Hand a device out no more until it is released; a run that has it goes on. One that is in quarantine already
    keeps the time since when, and takes the new reason. Raises NotFoundError.
    """
    get(session, name)
    at = now(session)
    mine = update(DeviceRow).where(DeviceRow.host_name == name, DeviceRow.name == device, DeviceRow.present)
    since = func.coalesce(DeviceRow.quarantined_at, at)
    if not changed(session, mine.values(quarantined_at=since, quarantine_reason=reason)):
        raise NotFoundError(f"host {name!r} has no device {device!r}")
    feed.tell_host(session, name, "quarantined", at=at)


def release(session: Session, name: str, device: str) -> None:
    """Hand a quarantined device out again, with no losses counted; another stays as it is. Raises NotFoundError."""
    get(session, name)
    mine = (DeviceRow.host_name == name, DeviceRow.name == device, DeviceRow.present)
    released = update(DeviceRow).where(*mine).values(quarantined_at=None, quarantine_reason=None, losses=0)
    if not changed(session, released):
        raise NotFoundError(f"host {name!r} has no device {device!r}; `rankzero hosts` lists those it has")
    feed.tell_host(session, name, "released")


def running(session: Session) -> Sequence[Row[str, int, int]]:
    """Return (host, job_id, attempt) of every part of an attempt that has not ended, by job."""
    columns = (Placement.host_name, Placement.job_id, Placement.attempt)
    return session.execute(select(*columns).where(Placement.ended_at.is_(None)).order_by(Placement.job_id)).all()


def get(session: Session, name: str) -> Host:
    """Return a host that was not removed, with its row held. Raises NotFoundError."""
    # Not against those who only refer to it: a supervisor that writes its placement has the attempt's row, which an
    # eviction is about to wait for.
    host = session.get(Host, name, populate_existing=True, with_for_update={"key_share": True})
    if host is None or host.removed_at is not None:
        raise NotFoundError(f"no host {name!r}")
    return host


def _evict(session: Session, name: str, *, note: str | None) -> None:
    """Tell each attempt that has a part of itself there to save and stop, unless it stops already."""
    message = f"host {name} is drained" + (f": {note}" if note else "")
    there = select(Placement.job_id, Placement.attempt).where(Placement.host_name == name, Placement.ended_at.is_(None))
    for job_id, attempt in session.execute(there.distinct().order_by(Placement.job_id)).all():
        attempts.order_stop(session, StopOrder.DRAINED, message, job_id=job_id, attempt=attempt)
