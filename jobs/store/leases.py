"""Leases: taken over by a placement's one supervisor, kept by its heartbeats, and found when they have run out.

Each supervisor renews those of its own placement: a host that is cut off loses its devices, and no other host's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import or_, select, update
from sqlalchemy.orm import Session

from jobs.database import now
from jobs.errors import StaleAttemptError
from jobs.settings import get_settings
from jobs.states import Intent, StopOrder
from jobs.store import attempts
from jobs.store.transitions import changed
from jobs.tables import Attempt, Job, Lease, Placement


@dataclass(frozen=True)
class Orders:
    """What is wanted of a running placement."""

    intent: Intent = Intent.RUN
    """By its job's user; comes before what the service wants."""
    stop: StopOrder | None = None
    """By the service."""
    stop_message: str | None = None
    """Why, in words."""


@dataclass(frozen=True)
class Renewal:
    """What a supervisor learns from its heartbeat."""

    orders: Orders
    lease_s: float
    """How long the leases hold from the moment the heartbeat was sent, at least."""


def claim(session: Session, placement_id: int, supervisor: str) -> Placement:
    """Make `supervisor` the one owner of a placement; claiming it again changes nothing, since an answer may be lost.

    Raises StaleAttemptError if it has another owner or has ended.
    """
    placement = attempts.get_placement(session, placement_id)
    attempts.fence(session, placement)
    at = now(session)
    free = or_(Placement.claimed_at.is_(None), Placement.supervisor == supervisor)
    statement = update(Placement).where(Placement.id == placement_id, free)
    if not changed(session, statement.values(claimed_at=at, heartbeat_at=at, supervisor=supervisor)):
        raise StaleAttemptError(f"placement {placement_id} is taken")
    _extend(session, placement, at)
    return attempts.get_placement(session, placement_id)


def renew(session: Session, placement: Placement, *, is_shipped: bool = False) -> Renewal:
    """Extend the placement's leases from the database's time on, and tell its orders.

    `is_shipped` says that the database has all that its run had written a moment ago. Raises StaleAttemptError once it
    has ended.
    """
    at = now(session)
    attempts.fence(session, placement)
    shipped = {"shipped_at": at} if is_shipped else {}
    changed(session, update(Placement).where(Placement.id == placement.id).values(heartbeat_at=at, **shipped))
    _extend(session, placement, at)
    return Renewal(read_orders(session, placement), get_settings().lease_s)


def read_orders(session: Session, placement: Placement) -> Orders:
    """Return what is wanted of a placement now. Raises StaleAttemptError once it, or its attempt, has ended."""
    query = (
        select(Job.intent, Attempt.stop_order, Attempt.stop_message)
        .join(Attempt, Attempt.job_id == Job.id)
        .join(Placement, (Placement.job_id == Attempt.job_id) & (Placement.attempt == Attempt.number))
        .where(Placement.id == placement.id, Placement.ended_at.is_(None), Attempt.ended_at.is_(None))
    )
    found = session.execute(query).one_or_none()
    if found is None:
        raise attempts.ended_error(placement)
    intent, stop, message = found
    return Orders(Intent(intent), StopOrder(stop) if stop else None, message)


def expired(session: Session, at: datetime) -> Sequence[Placement]:
    """Return the placements whose leases have run out by the database's time `at`, for `jobs.store.endings.expire`."""
    run_out = select(Lease.placement_id).where(Lease.released_at.is_(None), Lease.expires_at <= at)
    query = select(Placement).where(Placement.id.in_(run_out), Placement.ended_at.is_(None))
    return session.scalars(query.order_by(Placement.id)).all()


def have_run_out(session: Session, placement: Placement) -> bool:
    """Whether the placement's leases are over. To be asked with the attempt's row held: its supervisor may renew."""
    live = (Lease.placement_id == placement.id, Lease.released_at.is_(None))
    return session.execute(select(Lease.id).where(*live, Lease.expires_at <= now(session)).limit(1)).first() is not None


def _extend(session: Session, placement: Placement, at: datetime) -> None:
    held = update(Lease).where(Lease.placement_id == placement.id, Lease.released_at.is_(None))
    changed(session, held.values(expires_at=at + timedelta(seconds=get_settings().lease_s)))
