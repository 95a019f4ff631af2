"""Hosts and their devices: registration, heartbeats, and the planner's view of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog
from pydantic import ValidationError
from sqlalchemy import Row, select, update
from sqlalchemy.orm import Session, defer

from jobs.catalogs import Catalog
from jobs.database import now
from jobs.errors import HostNameTakenError, NotFoundError
from jobs.settings import get_settings
from jobs.store import feed
from jobs.store.transitions import changed
from jobs.tables import DeviceRow, Host, Job, Lease

log = structlog.get_logger()


@dataclass(frozen=True)
class DeviceInfo:
    """A device as its host describes it."""

    name: str
    kind: str
    uuid: str | None = None
    driver_index: int | None = None
    """The number by which the driver lists a GPU, as `nvidia-smi` prints it; `name` is the worker's own view."""
    model: str | None = None
    memory_bytes: int | None = None
    simulated: bool = False


@dataclass(frozen=True)
class HostStatus:
    """What a host says of itself with each heartbeat."""

    address: str
    """Name or address at which the ranks of other hosts reach it."""
    storages: Sequence[str]
    """Ids of the storages in its reach, that of its run root first."""
    looked_at: datetime | None
    """Database's time of its last look for them; None before the first, while it may have others in reach."""
    free_bytes: int
    """Space left on its run root."""
    min_free_bytes: int
    """Below which space its own supervisors refuse to begin a run: planned by any other limit, runs would come back."""
    fault: str | None
    """Why it can begin no run, in words that follow "it is"."""
    rendezvous_ports: str
    """`lowest-highest` of its ports at which the ranks of jobs on several hosts may meet."""


def register(
    session: Session,
    name: str,
    *,
    worker: str,
    run_root: str,
    devices: Sequence[DeviceInfo],
    replaces: str | None = None,
) -> None:
    """Write what a starting worker found on its host. Devices that are gone stay, as not present, for their history.

    `worker` is its identity, and `replaces` that of an earlier worker which the caller knows to be dead. Raises
    HostNameTakenError while any other has the name and has reported within `host_timeout_s`.
    """
    at = now(session)
    # Its name does not change: whoever writes a placement there need not wait.
    host = session.get(Host, name, populate_existing=True, with_for_update={"key_share": True})
    if host is None:
        host = Host(name=name, registered_at=at, storages=[])
        session.add(host)
    elif host.worker not in (worker, replaces) and is_alive(host, at):
        raise HostNameTakenError(f"host {name!r} has a worker that is alive ({host.worker}); name this one otherwise")
    host.worker, host.run_root, host.heartbeat_at, host.removed_at = worker, run_root, at, None
    session.flush()
    rows = session.scalars(select(DeviceRow).where(DeviceRow.host_name == name)).all()
    for row in rows:
        row.present = False
    session.flush()  # names are unique among present devices only, so that they may trade places
    # A GPU is known by its UUID: its row, and a live lease on it, stay with it when the worker numbers it otherwise.
    known = {row.uuid or row.name: row for row in rows}
    for device in devices:
        row = known.get(device.uuid or device.name) or DeviceRow(host_name=name, losses=0)
        row.name, row.kind, row.uuid, row.model = device.name, device.kind, device.uuid, device.model
        row.memory_bytes, row.simulated, row.present = device.memory_bytes, device.simulated, True
        row.driver_index = device.driver_index
        session.add(row)
    feed.tell_host(session, name, "registered", at=at)


def worker_of(session: Session, name: str) -> str | None:
    """Return the identity of the worker that has this host's name, if any ever had."""
    return session.scalars(select(Host.worker).where(Host.name == name)).one_or_none()


def set_catalog(session: Session, name: str, catalog: dict[str, Any]) -> None:
    """Publish what the host's trainer can run. Raises ValueError for anything but a catalog."""
    Catalog.model_validate(catalog).refuse_invalid_schemas()
    changed(session, update(Host).where(Host.name == name).values(catalog=catalog))


def catalogs(session: Session) -> list[Catalog]:
    """Return what the hosts have published."""
    return list(catalogs_by_host(session).values())


def catalogs_by_host(session: Session) -> dict[str, Catalog]:
    """Return what each host has published, by its name."""
    found = {}
    query = select(Host.name, Host.catalog).where(Host.removed_at.is_(None)).order_by(Host.name)
    for name, catalog in session.execute(query):
        try:
            if catalog:
                found[name] = Catalog.model_validate(catalog)
        except ValidationError as error:  # of another release: it must not keep jobs from being submitted
            log.warning("catalog_unreadable", host=name, error=str(error))
    return found


def beat(session: Session, name: str, *, worker: str) -> None:
    """Say that the host's worker lives.

    Raises HostNameTakenError if another has taken the name since, or the host was removed: it may register anew.
    """
    mine = update(Host).where(Host.name == name, Host.worker == worker, Host.removed_at.is_(None))
    if not changed(session, mine.values(heartbeat_at=now(session))):
        raise HostNameTakenError(f"host {name!r} was removed, or has another worker now")


def set_status(session: Session, name: str, status: HostStatus) -> None:
    """Publish what a host says of itself."""
    values = vars(status) | {"storages": list(status.storages)}
    # A worker that has only just started knows less than the one before it, whose word stands until it has looked.
    if status.looked_at is None and session.scalars(select(Host.storages).where(Host.name == name)).one_or_none():
        del values["storages"], values["looked_at"]
    changed(session, update(Host).where(Host.name == name).values(**values))


def set_free_bytes(session: Session, name: str, free_bytes: int) -> None:
    """Publish how much space is left on a host's run root, where that cannot wait for its next heartbeat."""
    changed(session, update(Host).where(Host.name == name).values(free_bytes=free_bytes))


def set_fault(session: Session, name: str, fault: str | None) -> None:
    """Publish why a host can begin no run, where that cannot wait for its next heartbeat."""
    changed(session, update(Host).where(Host.name == name).values(fault=fault))


def all_hosts(session: Session) -> Sequence[Host]:
    """Return every host but those removed, by name; what it publishes is large, and only read if it is looked at."""
    query = (
        select(Host)
        .where(Host.removed_at.is_(None))
        .options(defer(Host.catalog), defer(Host.roots), defer(Host.data_sets))
    )
    return session.scalars(query.order_by(Host.name)).all()


def get(session: Session, name: str) -> Host:
    """Return a host. Raises NotFoundError."""
    host = session.get(Host, name)
    if host is None:
        raise NotFoundError(f"no host {name!r}")
    return host


def is_alive(host: Host, at: datetime) -> bool:
    """Whether the host's worker has reported within `host_timeout_s` of the database's time `at`."""
    return at - host.heartbeat_at <= timedelta(seconds=get_settings().host_timeout_s)


def devices(session: Session) -> Sequence[Row[DeviceRow, int | None, int | None]]:
    """Return every present device with the job and the attempt that hold it, if any."""
    return session.execute(
        select(DeviceRow, Lease.job_id, Lease.attempt)
        .outerjoin(Lease, (Lease.device_id == DeviceRow.id) & Lease.released_at.is_(None))
        .where(DeviceRow.present)
        .order_by(DeviceRow.host_name, DeviceRow.id)
    ).all()


def lease_history(session: Session) -> Sequence[Row[str, str, Lease, Job]]:
    """Return every lease there ever was, with its host and device name, oldest first."""
    return session.execute(
        select(DeviceRow.host_name, DeviceRow.name, Lease, Job)
        .join(Lease, Lease.device_id == DeviceRow.id)
        .join(Job, Job.id == Lease.job_id)
        .order_by(Lease.id)
    ).all()
