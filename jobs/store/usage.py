"""Use: the device-seconds that users, and labels with a quota, had lately; those of long ago count less and less.

A device counts as one whatever it is: a GPU, or a CPU slot.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from sqlalchemy import delete, select, tuple_, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from jobs.planner.view import Account
from jobs.settings import get_settings
from jobs.store.transitions import changed
from jobs.tables import Job, Lease, Quota, Usage

FADED_HALF_LIVES = 40
"""After so many, a thousand devices that were used for a year come to less than a second."""


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
        session.execute(_hold(session, kind=kind, subject=subject, at=at))
        mine = (Usage.kind == kind, Usage.subject == subject)
        row = session.execute(select(Usage.device_s, Usage.at).where(*mine)).one()
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


def forget_faded(session: Session, at: datetime) -> None:
    """Remove, at the database's time `at`, what so many half-lives ago was used that nothing of it counts."""
    half_life_s = get_settings().fair_share_half_life_s
    session.execute(delete(Usage).where(Usage.at < at - timedelta(seconds=FADED_HALF_LIVES * half_life_s)))


def accounts_of(user: str | None, labels: Mapping[str, str]) -> list[Account]:
    """Return every account that a job of this user with these labels is counted on."""
    return [("user", user or ""), *(("label", f"{key}={value}") for key, value in labels.items())]


def _faded(since: datetime, at: datetime) -> float:
    """What is left, at `at`, of a second that was counted at `since`."""
    age_s = max((at - since).total_seconds(), 0.0)
    return math.pow(2, -age_s / get_settings().fair_share_half_life_s)


def _hold(session: Session, *, kind: str, subject: str, at: datetime) -> postgresql.Insert | sqlite.Insert:
    """A statement after which an account has a row, held by this transaction: nobody removes it meanwhile."""
    insert = sqlite.insert if session.get_bind().dialect.name == "sqlite" else postgresql.insert
    new = insert(Usage).values(kind=kind, subject=subject, device_s=0.0, at=at)
    return new.on_conflict_do_update(index_elements=["kind", "subject"], set_={"kind": Usage.kind})
