"""Telemetry: what GPUs did, summed up in stretches of time, all of one length and on the database's clock."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Insert, Select, and_, case, delete, false, func, or_, select, tuple_
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from jobs.database import now
from jobs.tables import DeviceRow, DeviceSample, Lease


@dataclass(frozen=True)
class Stretch:
    """What one GPU did from `at` on; None stands for what it cannot tell."""

    uuid: str
    at: datetime
    samples: int
    """Readings that it sums up."""
    utilisation: float | None = None
    """Mean, in percent of the time."""
    memory_bytes: int | None = None
    """Most that was used."""
    temperature_c: float | None = None
    """Highest."""
    power_w: float | None = None
    """Mean."""


def add(session: Session, host_name: str, stretches: Sequence[Stretch]) -> None:
    """Store what the GPUs of a host did, together with what is known of the same stretches already.

    A worker that is started anew in the middle of one adds to it. GPUs that the host does not have are passed over.
    """
    mine = select(DeviceRow).where(DeviceRow.host_name == host_name, DeviceRow.uuid.is_not(None))
    ids = {device.uuid: device.id for device in session.scalars(mine)}
    rows: list[dict[str, Any]] = [
        {
            "device_id": ids[each.uuid],
            "at": each.at,
            "samples": each.samples,
            "utilisation": each.utilisation,
            "memory_bytes": each.memory_bytes,
            "temperature_c": each.temperature_c,
            "power_w": each.power_w,
        }
        for each in stretches
        if each.uuid in ids
    ]
    if rows:
        session.execute(_add_up(session), rows)


def forget(session: Session, *, older_than: timedelta, limit: int) -> int:
    """Delete what is older, at most `limit` rows of it; return how many that were."""
    old = DeviceSample.at < now(session) - older_than
    # By device, as the key is: so they are found without a look at all the others.
    device_ids = session.scalars(select(DeviceRow.id)).all()
    found = select(DeviceSample.device_id, DeviceSample.at).where(DeviceSample.device_id.in_(device_ids), old)
    keys = session.execute(found.limit(limit)).all()
    if keys:
        key = tuple_(DeviceSample.device_id, DeviceSample.at)
        session.execute(delete(DeviceSample).where(key.in_([tuple(each) for each in keys])))
    return len(keys)


def select_host(host_name: str, *, begin: datetime | None = None, end: datetime | None = None) -> Select[DeviceSample]:
    """Return the query for what a host's GPUs did in the stretches that begin from `begin` on and before `end`."""
    devices = select(DeviceRow.id).where(DeviceRow.host_name == host_name)
    return _select(DeviceSample.device_id.in_(devices), begin, end)


def select_job(
    session: Session, job_id: int, *, stretch_s: int, begin: datetime | None = None, end: datetime | None = None
) -> Select[DeviceSample]:
    """Return the query for what a job's GPUs did while it held them, from and to the stretches in which that began and
    ended."""
    leases = session.execute(
        select(Lease.device_id, Lease.acquired_at, Lease.released_at).where(Lease.job_id == job_id)
    ).all()
    held = (
        and_(
            DeviceSample.device_id == device_id,
            DeviceSample.at > acquired_at - timedelta(seconds=stretch_s),
            *(() if released_at is None else (DeviceSample.at < released_at,)),
        )
        for device_id, acquired_at, released_at in leases
    )
    return _select(or_(false(), *held), begin, end)


def _select(which: ColumnElement[bool], begin: datetime | None, end: datetime | None) -> Select[DeviceSample]:
    query = select(DeviceSample).where(which)
    if begin is not None:
        query = query.where(DeviceSample.at >= begin)
    if end is not None:
        query = query.where(DeviceSample.at < end)
    return query.order_by(DeviceSample.at, DeviceSample.device_id)


def _add_up(session: Session) -> Insert:
    """An INSERT that adds to the rows that are there already."""
    is_sqlite = session.get_bind().dialect.name == "sqlite"
    insert = sqlite.insert(DeviceSample) if is_sqlite else postgresql.insert(DeviceSample)
    new, old = insert.excluded, DeviceSample

    def joined(name: str, both: Any) -> ColumnElement[Any]:
        ours, theirs = getattr(old, name), new[name]
        return case((ours.is_(None), theirs), (theirs.is_(None), ours), else_=both)

    def mean(name: str) -> ColumnElement[Any]:
        total = getattr(old, name) * old.samples + new[name] * new["samples"]
        return joined(name, total / (old.samples + new["samples"]))

    def highest(name: str) -> ColumnElement[Any]:
        greatest = func.max if is_sqlite else func.greatest
        return joined(name, greatest(getattr(old, name), new[name]))

    return insert.on_conflict_do_update(
        index_elements=["device_id", "at"],
        set_={
            "samples": old.samples + new["samples"],
            "utilisation": mean("utilisation"),
            "memory_bytes": highest("memory_bytes"),
            "temperature_c": highest("temperature_c"),
            "power_w": mean("power_w"),
        },
    )
