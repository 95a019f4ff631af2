"""Quarantine: devices that are not handed out, because run after run was lost on them or a process still has them."""

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from jobs.settings import get_settings
from jobs.store import feed
from jobs.store.transitions import changed
from jobs.tables import DeviceRow, Lease, Placement


def count_loss(session: Session, placement: Placement, *, local_rank: int | None, why: str, at: datetime) -> None:
    """Count one more attempt that was lost on a rank's device; those that were too many in a row are taken away.

    Without `local_rank`, on all of the placement's devices. CPU slots are not counted: nothing of them can be broken
    that another slot of the host has whole.
    """
    leased = session.scalars(select(Lease.device_id).where(Lease.placement_id == placement.id).order_by(Lease.id)).all()
    suspects = leased if local_rank is None else leased[local_rank : local_rank + 1]
    rows = select(DeviceRow).where(DeviceRow.id.in_(suspects), DeviceRow.kind != "cpu").order_by(DeviceRow.id)
    limit = get_settings().quarantine_after
    # Not against key shares: a planner that just leases such a device anew may itself wait for this attempt's row.
    held = rows.with_for_update(key_share=True).execution_options(populate_existing=True)
    for device in session.scalars(held):
        device.losses += 1
        if limit and device.losses >= limit and device.quarantined_at is None:
            device.quarantined_at = at
            device.quarantine_reason = f"{device.losses} attempts in a row were lost on it, the last one because {why}"
            feed.tell_host(session, placement.host_name, "quarantined", at=at)
    session.flush()


def forget_losses(session: Session, placements: Collection[Placement]) -> None:
    """A run succeeded on these placements' devices: what was lost on them before was not their fault."""
    used = select(Lease.device_id).where(Lease.placement_id.in_([placement.id for placement in placements]))
    changed(session, update(DeviceRow).where(DeviceRow.id.in_(used), DeviceRow.losses > 0).values(losses=0))


def take_away(session: Session, placement: Placement, *, why: str, at: datetime) -> None:
    """Take all devices of a placement away: which of them a process still has cannot be told."""
    used = select(Lease.device_id).where(Lease.placement_id == placement.id)
    free = update(DeviceRow).where(DeviceRow.id.in_(used), DeviceRow.quarantined_at.is_(None))
    if changed(session, free.values(quarantined_at=at, quarantine_reason=why)):
        feed.tell_host(session, placement.host_name, "quarantined", at=at)
