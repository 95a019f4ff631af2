"""The service at one moment, in the figures that operators watch: the same whichever process asks."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import case, func, select
from sqlalchemy.orm import Session

from jobs.database import now
from jobs.states import State
from jobs.store import feed, hosts, scenes
from jobs.tables import Delivery, Host, Job, Lease, Placement

DEVICE_STATES = ("quarantined", "held", "closed", "free")
HOST_STATES = ("open", "closed", "silent")


@dataclass(frozen=True)
class Gauges:
    """Ages are in seconds, and 0 where there is nothing to be old."""

    jobs: Mapping[State, int]
    oldest_queued_s: float
    """How long the job has been queued that has been for longest."""
    devices: Mapping[tuple[str, str], int]
    """Those of the hosts below, by kind and by the first of DEVICE_STATES that is so; closed is one whose host is."""
    hosts: Mapping[str, int]
    """Those not removed, by one of HOST_STATES."""
    heartbeat_ages_s: Mapping[str, float]
    """By name of the host."""
    leases: int
    """Live ones."""
    overdue_leases: int
    """Those of them that have run out: nobody has seen it yet."""
    ingest_lag_s: float
    """For how long the database has lacked something that a run has written: of the run that has waited for longest."""
    feed_lag_s: float
    """For how long the feed has been held back by a transaction that is under way."""
    deliveries: int
    """Messages to webhooks that are neither delivered nor given up."""
    overdue_delivery_s: float
    """For how long the next of them has been due."""


def read(session: Session) -> Gauges:
    """Return the figures of this moment, by the database's clock."""
    at = now(session)
    counted = session.execute(select(Job.state, func.count(), func.min(Job.queued_at)).group_by(Job.state)).all()
    by_state = {State(state): (count, since) for state, count, since in counted}
    leases, overdue = session.execute(
        select(func.count(), func.count(case((Lease.expires_at <= at, 1)))).where(Lease.released_at.is_(None))
    ).one()
    deliveries, due_at = session.execute(
        select(func.count(), func.min(Delivery.due_at)).where(Delivery.due_at.is_not(None))
    ).one()
    shipped_at: datetime | None = session.scalars(
        select(func.min(func.coalesce(Placement.shipped_at, Placement.claimed_at))).where(Placement.ended_at.is_(None))
    ).one()
    rows = hosts.all_hosts(session)
    return Gauges(
        jobs={state: by_state[state][0] if state in by_state else 0 for state in State},
        oldest_queued_s=_age_s(by_state[State.QUEUED][1], at) if State.QUEUED in by_state else 0.0,
        devices=_devices(session, rows, at),
        hosts=_hosts(rows, at),
        heartbeat_ages_s={host.name: _age_s(host.heartbeat_at, at) for host in rows},
        leases=leases,
        overdue_leases=overdue,
        ingest_lag_s=_age_s(shipped_at, at) if shipped_at else 0.0,
        feed_lag_s=feed.held_back_s(session),
        deliveries=deliveries,
        overdue_delivery_s=_age_s(due_at, at) if due_at else 0.0,
    )


def _devices(session: Session, rows: Sequence[Host], at: datetime) -> dict[tuple[str, str], int]:
    is_closed = {host.name: scenes.why_closed(host, at) is not None for host in rows}
    found: Counter[tuple[str, str]] = Counter()
    for device, job_id, _attempt in hosts.devices(session):
        if device.host_name in is_closed:
            so = (device.quarantined_at is not None, job_id is not None, is_closed[device.host_name], True)
            found[device.kind, DEVICE_STATES[so.index(True)]] += 1
    kinds = sorted({kind for kind, _state in found})
    return {(kind, state): found[kind, state] for kind in kinds for state in DEVICE_STATES}


def _hosts(rows: Sequence[Host], at: datetime) -> dict[str, int]:
    found = Counter(
        "silent" if not hosts.is_alive(host, at) else "closed" if scenes.why_closed(host, at) else "open"
        for host in rows
    )
    return {state: found[state] for state in HOST_STATES}


def _age_s(since: datetime, at: datetime) -> float:
    return max((at - since).total_seconds(), 0.0)
