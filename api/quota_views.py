"""Quotas as the API shows them: with what the jobs of each hold, and have used lately."""

from collections.abc import Mapping

from sqlalchemy.orm import Session

from api.fleet import Quota, Quotas, Use, UserUse
from jobs import tables
from jobs.database import now
from jobs.planner.view import Account
from jobs.store import quotas, usage


def view_quotas(session: Session) -> Quotas:
    """Return every quota, and the use of every user that has any."""
    held, used = quotas.held_devices(session), usage.read(session, now(session))
    users = sorted({subject for kind, subject in {*held, *used} if kind == "user"})
    return Quotas(
        items=[_view_quota(row, held, used) for row in quotas.all_quotas(session)],
        users=[
            UserUse(user=user or None, held_devices=held["user", user], recent_device_s=used.get(("user", user), 0.0))
            for user in users
        ],
    )


def view_quota(session: Session, kind: str, subject: str) -> Quota:
    """Return a quota. Raises NotFoundError."""
    row = quotas.get(session, (kind, subject))
    return _view_quota(row, quotas.held_devices(session), usage.read(session, now(session)))


def edited(quota: Quota | tables.Quota | None) -> dict[str, object]:
    """Return what administrators edit of a quota: its ETag's edition; nothing of one that is not there."""
    return {} if quota is None else {"max_devices": quota.max_devices, "share": quota.share}


def _view_quota(row: tables.Quota, held: Mapping[Account, int], used: Mapping[Account, float]) -> Quota:
    account = (row.kind, row.subject)
    use = Use(held_devices=held.get(account, 0), recent_device_s=used.get(account, 0.0))
    return Quota.model_validate(
        {
            "kind": row.kind,
            "subject": row.subject,
            "max_devices": row.max_devices,
            "share": row.share,
            "use": None if account == ("user", "*") else use,
        }
    )
