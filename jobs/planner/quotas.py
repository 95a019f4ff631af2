"""Quotas: how many devices a user, or the jobs of a label, may have at once, and whose turn it is within that."""

import math
from collections.abc import Iterable, Mapping

from jobs.planner.order import EVERY_USER
from jobs.planner.view import Account, Quota, RunningJob, WaitingJob


def in_words(devices: int) -> str:
    """Say how many devices."""
    return f"{devices} device" if devices == 1 else f"{devices} devices"


class _Limited:
    """One account that has a limit, while a plan is made."""

    __slots__ = ("account", "ahead", "lent_until", "most", "used", "waiting")

    def __init__(self, account: Account, most: int) -> None:
        self.account = account
        self.most = most
        self.used = 0
        """Devices of its jobs that run or start in this plan."""
        self.ahead = 0
        """Devices that its jobs which wait before others will take."""
        self.waiting = 0
        """How many jobs these are."""
        self.lent_until = math.inf
        """When the first of these may start: who has ended by then takes nothing from them."""

    def has_room(self, wants: int, ends: float) -> bool:
        """Whether it may have so many more devices until `ends`, and takes nobody's turn by that."""
        if self.used + wants > self.most:
            return False
        return self.used + self.ahead + wants <= self.most or ends <= self.lent_until

    def keep_turn(self, job: WaitingJob, start: float | None) -> None:
        """Count a job that waits and is to be started before those that come after it."""
        self.ahead += job.request.device_count
        self.waiting += 1
        self.lent_until = min(self.lent_until, -math.inf if start is None else start)

    def __str__(self) -> str:
        kind, subject = self.account
        owner = f"{kind} {subject}" if subject else "jobs without a user"
        return f"the quota of {owner} ({in_words(self.most)})"


class Quotas:
    """What the limited accounts use, as the plan goes.

    Within an account jobs start in the order of the line. One that asks for the whole quota would else never find it
    unused while smaller ones keep coming.
    """

    def __init__(self, quotas: Iterable[Quota], running: Iterable[RunningJob] = ()) -> None:
        self._most = {each.account: each.max_devices for each in quotas}
        self._limits_labels = any(most is not None and account[0] == "label" for account, most in self._most.items())
        self._accounts: dict[Account, _Limited | None] = {}
        self._any = any(most is not None for most in self._most.values())
        for job in running:
            self._charge(job.user, job.labels, len(job.device_ids))

    def why_never(self, wants: int, user: str | None, labels: Mapping[str, str]) -> str | None:
        """Say which quota a job of so many devices exceeds by itself, whatever else runs; None if it exceeds none."""
        for each in self._of(user, labels):
            if wants > each.most:
                return f"asks for {in_words(wants)}, more than {each} allows"
        return None

    def refuse(self, job: WaitingJob, ends: float) -> str | None:
        """Say why a job that is to have ended at `ends` may not start now, and keep its turn; None if it may."""
        wants = job.request.device_count
        limited = self._of(job.user, job.labels)
        if all(each.has_room(wants, ends) for each in limited):
            return None
        # Before it keeps a turn in any account: what no quota will ever allow must be in nobody's way.
        never = self.why_never(wants, job.user, job.labels)
        return never or self._wait_in(next(each for each in limited if not each.has_room(wants, ends)), job)

    def charge(self, job: WaitingJob) -> None:
        """Count a job that starts."""
        self._charge(job.user, job.labels, job.request.device_count)

    def keep_turn(self, job: WaitingJob, start: float | None) -> None:
        """Let no later job use up what this one, which waits for devices, will need of its quotas.

        `start` is when it is expected to start, if that is known.
        """
        for each in self._of(job.user, job.labels):
            each.keep_turn(job, start)

    def _wait_in(self, full: _Limited, job: WaitingJob) -> str:
        if full.waiting:
            # In this account only: one user's many jobs must not use up what the other users of a label could have.
            # Whom it comes after is not said, since that changes for all of them with every start.
            full.keep_turn(job, None)
            return f"waits for {full}, with others before it"
        # The first of an account keeps its turn wherever it is counted, so that it starts in the end.
        for each in self._of(job.user, job.labels):
            each.keep_turn(job, None)
        return f"waits for {full}, with {full.used} in use"

    def _charge(self, user: str | None, labels: Mapping[str, str], devices: int) -> None:
        for each in self._of(user, labels):
            each.used += devices

    def _of(self, user: str | None, labels: Mapping[str, str]) -> list[_Limited]:
        if not self._any:
            return []
        accounts: list[Account] = [("user", user or "")]
        if self._limits_labels:
            accounts += [("label", f"{key}={value}") for key, value in sorted(labels.items())]
        return [found for account in accounts if (found := self._find(account)) is not None]

    def _find(self, account: Account) -> _Limited | None:
        if account not in self._accounts:
            source = EVERY_USER if account[0] == "user" and account not in self._most else account
            most = self._most.get(source)
            self._accounts[account] = None if most is None else _Limited(account, most)
        return self._accounts[account]
