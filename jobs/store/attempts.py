"""Attempts, their placements and their leases: from the planner's decision to the proven end.

Every function that writes for an attempt checks first, in the same transaction, that the attempt has not ended
(`fence`): the row lock it takes also keeps the attempt from ending until that transaction is over.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import PurePath
from typing import Any

from sqlalchemy import or_, select, update
from sqlalchemy.orm import Session

from jobs.database import now
from jobs.errors import OffsetsMovedError, StaleAttemptError
from jobs.planner.view import Node, Preempt, Start
from jobs.settings import get_settings
from jobs.spec import requested_ranks
from jobs.states import Intent, Outcome, State, StopOrder
from jobs.store.jobs import settle
from jobs.store.transitions import changed, move, record
from jobs.tables import Attempt, DeviceRow, Host, Job, Lease, Placement


@dataclass(frozen=True)
class Renewal:
    """What a supervisor learns from its heartbeat."""

    intent: Intent
    lease_s: float
    """How long the leases hold from the moment the heartbeat was sent, at least."""


@dataclass(frozen=True)
class Shipped:
    """How much of a placement's files the database has, in bytes."""

    journal_offset: int
    log_offsets: dict[int, int]
    """By rank."""


def start(session: Session, decision: Start) -> list[Placement]:
    """Open the next attempt of a queued job with its placements and leases; none if the job moved on meanwhile."""
    at = now(session)
    # With its row held, a cancel that came between reading the queue and now has either happened or waits its turn.
    job = session.get(Job, decision.job_id, populate_existing=True, with_for_update=True)
    if job is None or job.state != State.QUEUED or job.intent != Intent.RUN:
        return []
    number = job.attempt + 1
    session.add(Attempt(job_id=job.id, number=number, created_at=at, world_size=requested_ranks(job.spec)))
    session.flush()
    placements = [
        _place(session, job, number, node, node_rank=node_rank, at=at) for node_rank, node in enumerate(decision.nodes)
    ]
    detail = {"placements": [{"host": each.host_name, "devices": each.devices} for each in placements]}
    columns = {"attempt": number, "progress": None, "reservation": None, "waits_for": None, "predicted_start": None}
    moved = move(session, job, State.STARTING, at=at, detail=detail, **columns)
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


def preempt(session: Session, decision: Preempt) -> None:
    """Tell a running attempt to stop for a job of higher priority, unless it has ended or stops already."""
    live = (Attempt.job_id == decision.job_id, Attempt.number == decision.attempt, Attempt.ended_at.is_(None))
    order = update(Attempt).where(*live, Attempt.stop_order.is_(None))
    message = f"preempted by job {decision.for_job}"
    if changed(session, order.values(stop_order=StopOrder.PREEMPTED, stop_message=message)):
        detail = {"level": "info", "message": message}
        record(session, decision.job_id, "log", attempt=decision.attempt, at=now(session), detail=detail)


def get_placement(session: Session, placement_id: int) -> Placement:
    """Return a placement that exists."""
    return session.get_one(Placement, placement_id, populate_existing=True)


def open_placements(session: Session, host_name: str) -> Sequence[Placement]:
    """Return the placements of a host that have not ended."""
    query = select(Placement).where(Placement.host_name == host_name, Placement.ended_at.is_(None))
    return session.scalars(query.order_by(Placement.id)).all()


def claim(session: Session, placement_id: int, supervisor: str) -> Placement:
    """Make `supervisor` the one owner of a placement; claiming it again changes nothing, since an answer may be lost.

    Raises StaleAttemptError if it has another owner or has ended.
    """
    placement = get_placement(session, placement_id)
    # The attempt first, as `end` does: transactions that lock in the same order never deadlock.
    fence(session, job_id=placement.job_id, attempt=placement.attempt)
    at = now(session)
    free = or_(Placement.claimed_at.is_(None), Placement.supervisor == supervisor)
    statement = update(Placement).where(Placement.id == placement_id, free, Placement.ended_at.is_(None))
    if not changed(session, statement.values(claimed_at=at, heartbeat_at=at, supervisor=supervisor)):
        raise StaleAttemptError(f"placement {placement_id} is taken or has ended")
    placement = get_placement(session, placement_id)
    renew(session, placement)
    return placement


def renew(session: Session, placement: Placement) -> Renewal:
    """Extend the attempt's leases from the database's time on, and tell the user's intent.

    Raises StaleAttemptError once the attempt has ended.
    """
    at = now(session)
    fence(session, job_id=placement.job_id, attempt=placement.attempt)
    lease_s = get_settings().lease_s
    changed(
        session,
        update(Lease)
        .where(Lease.job_id == placement.job_id, Lease.attempt == placement.attempt, Lease.released_at.is_(None))
        .values(expires_at=at + timedelta(seconds=lease_s)),
    )
    changed(session, update(Placement).where(Placement.id == placement.id).values(heartbeat_at=at))
    intent = session.scalars(select(Job.intent).where(Job.id == placement.job_id)).one()
    return Renewal(Intent(intent), lease_s)


def read_intent(session: Session, placement: Placement) -> Intent:
    """Return what the user wants now. Raises StaleAttemptError once the attempt has ended."""
    query = select(Job.intent).join(Attempt, Attempt.job_id == Job.id)
    live = (Attempt.job_id == placement.job_id, Attempt.number == placement.attempt, Attempt.ended_at.is_(None))
    intent = session.scalars(query.where(*live)).one_or_none()
    if intent is None:
        raise StaleAttemptError(f"job {placement.job_id}, attempt {placement.attempt} has ended")
    return Intent(intent)


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
    fence(session, job_id=placement.job_id, attempt=placement.attempt)
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
    fence(session, job_id=placement.job_id, attempt=placement.attempt)
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
    fence(session, job_id=placement.job_id, attempt=placement.attempt)
    job = session.get_one(Job, placement.job_id, populate_existing=True)
    known = job.progress or {}
    merged = known | progress | {"values": known.get("values", {}) | progress.get("values", {})}
    changed(session, update(Job).where(Job.id == job.id).values(progress=merged, updated_at=now(session)))


def end(
    session: Session,
    *,
    job_id: int,
    attempt: int,
    outcome: Outcome,
    failure: dict[str, Any] | None = None,
    spends_retry: bool = True,
) -> State:
    """End an attempt, free its devices and move its job on, all or nothing; return the job's new state.

    A lost attempt spends one of the job's retries, unless its host was shut down in order (`spends_retry=False`).
    The caller has proven that no process of the attempt is left, or that the time is past by which a cut-off
    supervisor has killed its own. Raises StaleAttemptError if the attempt has ended already.
    """
    fence(session, job_id=job_id, attempt=attempt)
    at = now(session)  # with the attempt's row held: its end is later than all that was written in its name
    mine = (Attempt.job_id == job_id, Attempt.number == attempt)
    changed(session, update(Attempt).where(*mine).values(ended_at=at, outcome=outcome, failure=failure))
    open_ = (Placement.job_id == job_id, Placement.attempt == attempt, Placement.ended_at.is_(None))
    changed(session, update(Placement).where(*open_).values(ended_at=at))
    held = (Lease.job_id == job_id, Lease.attempt == attempt, Lease.released_at.is_(None))
    changed(session, update(Lease).where(*held).values(released_at=at))
    # With its row held: an intent written at this moment is either seen here, or sees the state written here.
    job = session.get_one(Job, job_id, populate_existing=True, with_for_update=True)
    to, columns = _next_state(job, outcome, spends_retry=spends_retry)
    columns["failure"] = failure if outcome in (Outcome.FAILED, Outcome.LOST) else None
    detail: dict[str, Any] = {"outcome": outcome}
    if failure is not None:
        detail |= {"cause": failure.get("cause"), "message": failure.get("message"), "rank": failure.get("rank")}
    moved = move(session, job, to, at=at, detail=detail, **columns)
    assert moved, "the attempt that has just ended was the only one that could move the job"
    settle(session, job)  # the user may have changed their mind since the outcome was concluded
    return State(job.state)


def expired(session: Session) -> set[tuple[int, int]]:
    """Return (job_id, attempt) of every attempt whose leases have run out, for `expire`."""
    query = (
        select(Lease.job_id, Lease.attempt)
        .join(Attempt, (Attempt.job_id == Lease.job_id) & (Attempt.number == Lease.attempt))
        .where(Lease.released_at.is_(None), Lease.expires_at <= now(session), Attempt.ended_at.is_(None))
        .distinct()
    )
    return {(job_id, attempt) for job_id, attempt in session.execute(query)}


def expire(session: Session, *, job_id: int, attempt: int) -> bool:
    """End an attempt as lost if its leases have run out; False if it has ended, was renewed, or is just being written.

    One transaction for each: an attempt that a hung process holds must not keep the others' devices from being freed.
    """
    try:
        fence(session, job_id=job_id, attempt=attempt, skip_locked=True)
    except StaleAttemptError:
        return False
    live = (Lease.job_id == job_id, Lease.attempt == attempt, Lease.released_at.is_(None))
    # Looked at again with the attempt's row held: its supervisor may have renewed since the list was read.
    if session.execute(select(Lease.id).where(*live, Lease.expires_at <= now(session)).limit(1)).first() is None:
        return False
    failure = {"cause": "lost", "message": "its lease ran out: no word from its supervisor", "rank": None}
    end(session, job_id=job_id, attempt=attempt, outcome=Outcome.LOST, failure=failure)
    return True


def select_attempts(session: Session, job_id: int) -> Sequence[Attempt]:
    """Return the attempts of a job, oldest first."""
    return session.scalars(select(Attempt).where(Attempt.job_id == job_id).order_by(Attempt.number)).all()


def select_placements(session: Session, job_id: int) -> Sequence[Placement]:
    """Return the placements of all attempts of a job, oldest first."""
    return session.scalars(select(Placement).where(Placement.job_id == job_id).order_by(Placement.id)).all()


def device_rows(session: Session, placement: Placement) -> Sequence[DeviceRow]:
    """Return the placement's devices in rank order: those of its leases, by whatever name they go now."""
    query = select(DeviceRow).join(Lease, Lease.device_id == DeviceRow.id)
    mine = (Lease.job_id == placement.job_id, Lease.attempt == placement.attempt)
    return session.scalars(query.where(*mine, DeviceRow.host_name == placement.host_name).order_by(Lease.id)).all()


def note(session: Session, placement: Placement, kind: str, detail: dict[str, Any]) -> None:
    """Write an event of the running attempt. Raises StaleAttemptError once it has ended."""
    fence(session, job_id=placement.job_id, attempt=placement.attempt)
    # All who write an event of a job hold its row, so that ids become visible in order and no follower misses one.
    session.execute(select(Job.id).where(Job.id == placement.job_id).with_for_update())
    record(session, placement.job_id, kind, attempt=placement.attempt, at=now(session), detail=detail)


def fence(session: Session, *, job_id: int, attempt: int, skip_locked: bool = False) -> None:
    """Hold the attempt's row for the rest of the transaction, or raise StaleAttemptError if it has ended.

    `skip_locked` also raises it, instead of waiting, where another transaction holds the row.
    """
    live = (Attempt.job_id == job_id, Attempt.number == attempt, Attempt.ended_at.is_(None))
    query = select(Attempt.number).where(*live).with_for_update(skip_locked=skip_locked)
    if session.execute(query).one_or_none() is None:
        raise StaleAttemptError(f"job {job_id}, attempt {attempt} has ended: its supervisor must stop")


def _next_state(job: Job, outcome: Outcome, *, spends_retry: bool) -> tuple[State, dict[str, Any]]:
    """Where a job goes when its attempt ends, and the columns that change with it."""
    if outcome is not Outcome.LOST:
        return State(outcome.value), {}
    if job.intent == Intent.CANCEL:
        return State.CANCELLED, {}
    if job.intent == Intent.PAUSE:
        return State.PAUSED, {}
    if not spends_retry:
        return State.QUEUED, {}
    if job.retries >= job.max_retries:
        return State.FAILED, {}
    return State.QUEUED, {"retries": job.retries + 1}
