"""The line: in which order the waiting jobs are looked at."""

from collections.abc import Container, Mapping, Sequence

from jobs.planner.view import Account, Quota, Scene, WaitingJob

MOST_PRIORITY = 100
FIRST_S = 1e12
"""How far forward a job comes, in seconds, for which others were stopped: before everybody, and still a number that a
database stores."""
LEAST_SHARE = 1e-9
EVERY_USER = ("user", "*")


def in_line(scene: Scene, usable: Container[int]) -> list[tuple[float, WaitingJob]]:
    """Return the waiting jobs with their line keys, first come first.

    The key is the time a job waits from, brought forward by its priority and put off by its fair share. It grows with
    nobody's waiting: ageing is that who comes later has a later time. `usable` holds the ids of the devices that can be
    handed out: jobs were stopped for a reservation, but it counts no more once its devices do not.
    """
    policy = scene.policy
    fair_share = FairShare(scene.quotas, scene.usage)
    keyed = []
    for job in scene.waiting:
        key = job.waits_from - job.priority * policy.ageing_s
        key += policy.fair_share_s * fair_share.used_lately(job.user, job.labels)
        if _comes_first(job, scene.now, usable):
            key -= FIRST_S
        keyed.append((key, job.id, job))
    keyed.sort(key=lambda each: each[:2])
    return [(key, job) for key, _id, job in keyed]


def _comes_first(job: WaitingJob, now: float, usable: Container[int]) -> bool:
    reservation = job.reservation
    if reservation is None or not reservation.preempts or is_resting(job, now):
        return False
    return all(device_id in usable for device_id in reservation.device_ids)


def is_resting(job: WaitingJob, now: float) -> bool:
    """Whether it is too early to try again after a lost attempt."""
    return job.not_before is not None and job.not_before > now


class FairShare:
    """Which part of what was used lately each account has used, its share taken into account."""

    def __init__(self, quotas: Sequence[Quota], usage: Mapping[Account, float]) -> None:
        shares = {quota.account: max(quota.share, LEAST_SHARE) for quota in quotas}
        self._label_keys = sorted({subject.partition("=")[0] for kind, subject in shares if kind == "label"})
        self._weighted: dict[Account, float] = {}
        totals: dict[str | None, float] = {}
        for account, used in usage.items():
            share = shares.get(account, shares.get(EVERY_USER, 1.0) if account[0] == "user" else 1.0)
            self._weighted[account] = used / share
            group = _group(account)
            totals[group] = totals.get(group, 0.0) + used / share
        self._totals = totals
        self._known: dict[tuple[str | None, ...], float] = {}

    def used_lately(self, user: str | None, labels: Mapping[str, str]) -> float:
        """Return a number from 0 to 1: of the user, or of a label that has a quota, whichever has used more."""
        if not self._weighted:
            return 0.0
        who = (user, *[labels.get(key) for key in self._label_keys])
        known = self._known.get(who)
        if known is None:
            accounts: list[Account] = [("user", user or "")]
            accounts += [("label", f"{key}={labels[key]}") for key in self._label_keys if key in labels]
            # In whole percents: else every key would change, and be written anew, with every second of use.
            known = self._known[who] = round(max(map(self._part, accounts)), 2)
        return known

    def _part(self, account: Account) -> float:
        total = self._totals.get(_group(account), 0.0)
        return self._weighted.get(account, 0.0) / total if total > 0 else 0.0


def _group(account: Account) -> str | None:
    """Whom an account shares with: a user with all users, the value of a label with the other values of its key."""
    kind, subject = account
    return None if kind == "user" else subject.partition("=")[0]
