"""Attempts and their placements: opened by the planner's decision, and what is written in their name until they end.

Every function that writes for a placement checks first, in the same transaction, that neither it nor its attempt has
ended (`fence`): the row lock it takes also keeps them from ending until that transaction is over. Whoever locks more
does it in this order, so that nobody waits in a circle: attempt, placement, leases, job, devices, usage.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import PurePath
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from jobs import pace
from jobs.database import now
from jobs.errors import OffsetsMovedError, StaleAttemptError
from jobs.feed import Topic
from jobs.pace import Try
from jobs.planner.view import Node, Preempt, Start
from jobs.settings import get_settings
from jobs.spec import requested_ranks
from jobs.states import Intent, State, StopOrder
from jobs.store import feed
from jobs.store.transitions import changed, move, record
from jobs.tables import Attempt, DeviceRow, Host, Job, Lease, Placement

TRY_COLUMNS = (
    Attempt.created_at,
    Attempt.started_at,
    func.coalesce(Attempt.trained_until, Attempt.ended_at).label("ranks_ended_at"),
    Attempt.resumed_step,
)
"""The fields of a `Try`, of an attempt that has ended."""


@dataclass(frozen=True)
class Shipped:
    """How much of a placement's files the database has, in bytes."""

    journal_offset: int
    log_offsets: dict[int, int]
    """By rank."""


def start(session: Session, decision: Start) -> list[Placement]:
    """Open the next attempt of a queued job with its placements and leases, and return the placements by node rank.

    There are none where the job moved on meanwhile, or node 0's host has no port left at which the hosts could meet.
    """
    at = now(session)
    # With its row held, a cancel that came between reading the queue and now has either happened or waits its turn.
    job = session.get(Job, decision.job_id, populate_existing=True, with_for_update=True)
    if job is None or job.state != State.QUEUED or job.intent != Intent.RUN:
        return []
    number = job.attempt + 1
    master_port = None
    if len(decision.nodes) > 1:
        master_port = _free_port(session, decision.nodes[0].host_name, first=job.id + number)
        if master_port is None:
            reason = f"every rendezvous port of {decision.nodes[0].host_name} is in use"
            news = update(Job).where(Job.id == job.id, Job.reason.is_distinct_from(reason))
            changed(session, news.values(reason=reason))
            return []
    session.add(Attempt(job_id=job.id, number=number, created_at=at, world_size=requested_ranks(job.spec)))
    session.flush()
    placements = [
        _place(session, job, number, node, node_rank=node_rank, at=at) for node_rank, node in enumerate(decision.nodes)
    ]
    placements[0].master_port = master_port
    session.flush()
    detail = {"placements": [{"host": each.host_name, "devices": each.devices} for each in placements]}
    columns = {"attempt": number, "progress": None, "reservation": None, "waits_for": None, "predicted_start": None}
    moved = move(session, job, State.STARTING, at=at, detail=detail, not_before=None, **columns)
    assert moved, "its row is held, so a queued job does not move meanwhile"
    return placements


def _place(session: Session, job: Job, number: int, node: Node, *, node_rank: int, at: datetime) -> Placement:
    run_root = session.scalars(select(Host.run_root).where(Host.name == node.host_name)).one()
    # The token keeps a run root that outlived its database from handing an old journal to a new attempt.
    run_dir = PurePath(run_root) / f"job-{job.id}" / f"attempt-{number}-{secrets.token_hex(4)}"
    placement = Placement(
        job_id=job.id,
        attempt=number,
        node_rank=node_rank,
        host_name=node.host_name,
        devices=[device.name for device in node.devices],
        run_dir=str(run_dir),
        created_at=at,
        journal_offset=0,
        log_offsets={},
    )
    session.add(placement)
    session.flush()
    expires = at + timedelta(seconds=get_settings().lease_s)
    for device in node.devices:
        lease = Lease(device_id=device.id, job_id=job.id, attempt=number, placement_id=placement.id)
        lease.acquired_at, lease.expires_at = at, expires
        session.add(lease)
    session.flush()
    return placement


def _free_port(session: Session, host_name: str, *, first: int) -> int | None:
    """A rendezvous port of the host that no live placement has.

    The search begins elsewhere for each attempt (`first`): one that another program has taken is not tried again.
    """
    told = session.scalars(select(Host.rendezvous_ports).where(Host.name == host_name)).one()
    lowest, highest = map(int, (told or get_settings().rendezvous_ports).split("-"))
    live = (Placement.host_name == host_name, Placement.ended_at.is_(None), Placement.master_port.is_not(None))
    taken = set(session.scalars(select(Placement.master_port).where(*live)))
    count = highest - lowest + 1
    ports = (lowest + (first + offset) % count for offset in range(count))
    return next((port for port in ports if port not in taken), None)


def preempt(session: Session, decision: Preempt) -> None:
    """Tell a running attempt to stop for a job of higher priority, unless it has ended or stops already."""
    message = f"preempted by job {decision.for_job}"
    order_stop(session, StopOrder.PREEMPTED, message, job_id=decision.job_id, attempt=decision.attempt)


def order_stop(session: Session, order: StopOrder, message: str, *, job_id: int, attempt: int) -> bool:
    """Tell an attempt to stop, and its job's events why; False where it has ended or was told to stop before."""
    live = (Attempt.job_id == job_id, Attempt.number == attempt, Attempt.ended_at.is_(None))
    statement = update(Attempt).where(*live, Attempt.stop_order.is_(None))
    if not changed(session, statement.values(stop_order=order, stop_message=message)):
        return False
    _add_event(session, job_id, attempt, "log", {"level": "info", "message": message})
    return True


def get_placement(session: Session, placement_id: int) -> Placement:
    """Return a placement that exists."""
    return session.get_one(Placement, placement_id, populate_existing=True)


def open_placements(session: Session, host_name: str, *, worker: str) -> Sequence[Placement]:
    """Return the placements of a host that have not ended; none once it has another worker than this one."""
    query = select(Placement).join(Host).where(Placement.host_name == host_name, Placement.ended_at.is_(None))
    return session.scalars(query.where(Host.worker == worker).order_by(Placement.id)).all()


def ended_placements(session: Session, host_name: str, *, run_dirs: Sequence[str], for_s: float) -> Sequence[Placement]:
    """Return the placements of this host, of those in `run_dirs`, that ended at least `for_s` seconds ago."""
    if not run_dirs:
        return []
    before = now(session) - timedelta(seconds=for_s)
    query = select(Placement).where(Placement.host_name == host_name, Placement.ended_at <= before)
    return session.scalars(query.where(Placement.run_dir.in_(run_dirs))).all()


def advance(session: Session, placement: Placement, *, shipped: Shipped, to: Shipped) -> None:
    """Record how far the placement's files are shipped; the rows they hold go into the same transaction.

    Raises OffsetsMovedError, with what the database has, where that is not `shipped`, and StaleAttemptError once the
    attempt has ended.
    """
    fence(session, placement)
    current = shipped_of(get_placement(session, placement.id))
    if current != shipped:
        raise OffsetsMovedError(f"placement {placement.id}: {current} is shipped, not {shipped}")
    offsets = {str(rank): offset for rank, offset in to.log_offsets.items()}
    statement = update(Placement).where(Placement.id == placement.id)
    changed(session, statement.values(journal_offset=to.journal_offset, log_offsets=offsets))


def shipped_of(placement: Placement) -> Shipped:
    """Return how far the placement's files are shipped, by the row as it was read."""
    return Shipped(placement.journal_offset, {int(rank): int(at) for rank, at in placement.log_offsets.items()})


def set_running(session: Session, placement: Placement, *, resumed_step: int | None) -> None:
    """The ranks are up: the job is running."""
    at = now(session)
    fence(session, placement)
    changed(
        session,
        update(Attempt)
        .where(Attempt.job_id == placement.job_id, Attempt.number == placement.attempt, Attempt.started_at.is_(None))
        .values(started_at=at, resumed_step=resumed_step),
    )
    job = session.get_one(Job, placement.job_id, populate_existing=True)
    if job.state == State.STARTING:
        move(session, job, State.RUNNING, at=at, started_at=job.started_at or at)


def set_progress(session: Session, placement: Placement, progress: dict[str, Any]) -> None:
    """Merge `progress`, and its `values` into those known, into how far the job is."""
    fence(session, placement)
    job = session.get_one(Job, placement.job_id, populate_existing=True)
    known = job.progress or {}
    merged = known | progress | {"values": known.get("values", {}) | progress.get("values", {})}
    at = now(session)
    changed(session, update(Job).where(Job.id == job.id).values(progress=merged, updated_at=at))
    feed.tell(session, Topic.JOBS, {"progress": merged}, job_id=job.id, at=at)


def select_attempts(session: Session, job_id: int) -> Sequence[Attempt]:
    """Return the attempts of a job, oldest first."""
    return session.scalars(select(Attempt).where(Attempt.job_id == job_id).order_by(Attempt.number)).all()


def select_placements(session: Session, job_id: int) -> Sequence[Placement]:
    """Return the placements of all attempts of a job, oldest first."""
    return session.scalars(select(Placement).where(Placement.job_id == job_id).order_by(Placement.id)).all()


def device_rows(session: Session, placement: Placement) -> Sequence[DeviceRow]:
    """Return the placement's devices in rank order: those of its leases, by whatever name they go now."""
    query = select(DeviceRow).join(Lease, Lease.device_id == DeviceRow.id)
    return session.scalars(query.where(Lease.placement_id == placement.id).order_by(Lease.id)).all()


def trained_s(session: Session, job_id: int) -> float:
    """Return for how many seconds the attempts of a job that have ended have trained, from their first record on."""
    over = (Attempt.job_id == job_id, Attempt.ended_at.is_not(None))
    tries = [Try(*row) for row in session.execute(select(*TRY_COLUMNS).where(*over))]
    return pace.trained_s(tries, now(session))


def note(session: Session, placement: Placement, kind: str, detail: dict[str, Any]) -> None:
    """Write an event of the running attempt. Raises StaleAttemptError once it has ended."""
    fence(session, placement)
    _add_event(session, placement.job_id, placement.attempt, kind, detail)


def fence(session: Session, placement: Placement, *, skip_locked: bool = False) -> None:
    """Hold the attempt's row for the rest of the transaction; raise StaleAttemptError if it or the placement has ended.

    `skip_locked` also raises it, instead of waiting, where another transaction holds the row.
    """
    live = (Attempt.job_id == placement.job_id, Attempt.number == placement.attempt, Attempt.ended_at.is_(None))
    query = select(Attempt.number).where(*live).with_for_update(skip_locked=skip_locked)
    is_live = session.execute(query).one_or_none() is not None
    # A statement of its own: only one that begins with the attempt's row held sees what its last holder wrote.
    open_ = select(Placement.id).where(Placement.id == placement.id, Placement.ended_at.is_(None))
    if not is_live or session.execute(open_).one_or_none() is None:
        raise ended_error(placement)


def ended_error(placement: Placement) -> StaleAttemptError:
    """Return what a supervisor is told whose placement, or whole attempt, has ended without it."""
    who = f"job {placement.job_id}, attempt {placement.attempt}"
    share = f" on node {placement.node_rank}" if placement.node_rank else ""
    return StaleAttemptError(f"{who} has ended{share}: its supervisor must stop")


def _add_event(session: Session, job_id: int, attempt: int, kind: str, detail: dict[str, Any]) -> None:
    # All who write an event of a job hold its row, so that ids become visible in order and no follower misses one.
    session.execute(select(Job.id).where(Job.id == job_id).with_for_update())
    record(session, job_id, kind, attempt=attempt, at=now(session), detail=detail)
