"""Use: the device-seconds that users, and labels with a quota, had lately; those of long ago count less and less.

A device counts as one whatever it is: a GPU, or a CPU slot.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime

from sqlalchemy import delete, select, tuple_, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from jobs.planner.view import Account
from jobs.settings import get_settings
from jobs.store.transitions import changed
from jobs.tables import Job, Lease, Quota, Usage


def add(session: Session, job: Job, device_s: float, at: datetime) -> None:
    """Add to the use of a job's user, and of those of its labels that have a quota, what it gave back at `at`.

    `device_s` is what `weighed` makes of each lease's time. The last write of its transaction: it holds the accounts'
    rows, which all jobs of a user share, until that is over.
    """
    labels = [f"{key}={value}" for key, value in job.labels.items()]
    limited = select(Quota.subject).where(Quota.kind == "label", Quota.subject.in_(labels))
    # Labels without one are not kept: a label that is new with every job would grow the table for ever.
    with_quota = set(session.scalars(limited)) if labels else set()
    accounts = [each for each in accounts_of(job.user, job.labels) if each[0] == "user" or each[1] in with_quota]
    for kind, subject in sorted(accounts):  # two that end at once take the rows in the same order: no deadlock
        session.execute(_insert_if_new(session).values(kind=kind, subject=subject, device_s=0.0, at=at))
        mine = (Usage.kind == kind, Usage.subject == subject)
        row = session.execute(select(Usage.device_s, Usage.at).where(*mine).with_for_update()).one_or_none()
        if row is None:
            continue  # the quota of that label was removed at this moment
        total = row.device_s * _faded(row.at, at) + device_s
        changed(session, update(Usage).where(*mine).values(device_s=total, at=max(at, row.at)))


def weighed(held_s: float) -> float:
    """Return what a device that was held for `held_s` seconds until now counts, in device-seconds of now.

    The integral of 2^(-age / half-life) over that time, so that one long run counts as many short ones in a row do.
    """
    half_life_s = get_settings().fair_share_half_life_s
    return half_life_s / math.log(2) * (1 - math.pow(2, -max(held_s, 0.0) / half_life_s))


def read(session: Session, at: datetime) -> dict[Account, float]:
    """Return each account's use as of `at`, with what is held now."""
    found: defaultdict[Account, float] = defaultdict(float)
    rows = session.execute(select(Usage.kind, Usage.subject, Usage.device_s, Usage.at))
    for kind, subject, device_s, since in rows:
        found[(kind, subject)] += device_s * _faded(since, at)
    kept = set(session.scalars(select(Quota.subject).where(Quota.kind == "label")))
    for user, labels, acquired_at in session.execute(
        select(Job.user, Job.labels, Lease.acquired_at)
        .join(Lease, Lease.job_id == Job.id)
        .where(Lease.released_at.is_(None))
    ):
        held = weighed((at - acquired_at).total_seconds())
        for account in accounts_of(user, labels):
            if account[0] == "user" or account[1] in kept:
                found[account] += held
    return dict(found)


def forget(session: Session, accounts: Iterable[Account]) -> None:
    """Remove what these accounts have used."""
    session.execute(delete(Usage).where(tuple_(Usage.kind, Usage.subject).in_(list(accounts))))


def accounts_of(user: str | None, labels: Mapping[str, str]) -> list[Account]:
    """Return every account that a job of this user with these labels is counted on."""
    return [("user", user or ""), *(("label", f"{key}={value}") for key, value in labels.items())]


def _faded(since: datetime, at: datetime) -> float:
    """What is left, at `at`, of a second that was counted at `since`."""
    age_s = max((at - since).total_seconds(), 0.0)
    return math.pow(2, -age_s / get_settings().fair_share_half_life_s)


def _insert_if_new(session: Session) -> postgresql.Insert | sqlite.Insert:
    if session.get_bind().dialect.name == "sqlite":
        return sqlite.insert(Usage).on_conflict_do_nothing()
    return postgresql.insert(Usage).on_conflict_do_nothing()
