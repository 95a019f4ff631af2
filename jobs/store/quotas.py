"""Quotas: how many devices a user's, or a label's, jobs hold at most, and their share."""

from collections import Counter
from collections.abc import Sequence

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from jobs.database import lock_planning
from jobs.errors import NotFoundError
from jobs.planner import view
from jobs.planner.view import Account
from jobs.store import usage
from jobs.tables import Job, Lease, Quota


def all_quotas(session: Session) -> Sequence[Quota]:
    """Return every quota, by kind and subject."""
    return session.scalars(select(Quota).order_by(Quota.kind, Quota.subject)).all()


def hold(session: Session, account: Account) -> Quota | None:
    """Return the quota of an account, if it has one, with the planners' lock: nobody changes it until that is over."""
    lock_planning(session)
    return _find(session, account)


def get(session: Session, account: Account) -> Quota:
    """Return the quota of an account. Raises NotFoundError."""
    quota = _find(session, account)
    if quota is None:
        raise NotFoundError(f"no quota of {account[0]} {account[1]!r}")
    return quota


def put(session: Session, account: Account, *, max_devices: int | None, share: float) -> Quota:
    """Set the quota of an account, in place of the one it had."""
    # With the planners' lock: two that set it at once write one row, and no plan is made from half of a change.
    lock_planning(session)
    quota = _find(session, account)
    if quota is None:
        quota = Quota(kind=account[0], subject=account[1])
        session.add(quota)
    quota.max_devices, quota.share = max_devices, share
    session.flush()
    return quota


def remove(session: Session, account: Account) -> None:
    """Remove the quota of an account. Raises NotFoundError."""
    lock_planning(session)
    quota = get(session, account)
    session.execute(delete(Quota).where(Quota.id == quota.id))
    if account[0] == "label":  # counted only while it has a quota
        usage.forget(session, [account])


def held_devices(session: Session) -> Counter[Account]:
    """Return how many devices each account's jobs hold now."""
    held: Counter[Account] = Counter()
    devices = func.count(Lease.id).label("devices")
    live = select(Lease.job_id, devices).where(Lease.released_at.is_(None)).group_by(Lease.job_id).subquery()
    query = select(Job.user, Job.labels, live.c.devices).join(live, live.c.job_id == Job.id)
    for user, labels, count in session.execute(query):
        for account in usage.accounts_of(user, labels):
            held[account] += count
    return held


def read(session: Session) -> tuple[view.Quota, ...]:
    """Return every quota as the planner sees it."""
    return tuple(
        view.Quota((each.kind, each.subject), max_devices=each.max_devices, share=each.share)
        for each in all_quotas(session)
    )


def _find(session: Session, account: Account) -> Quota | None:
    return session.scalars(select(Quota).where(Quota.kind == account[0], Quota.subject == account[1])).one_or_none()
