"""The use that the fair share goes by: device-seconds of each account, halved for every half-life that passes."""

from collections.abc import Iterable, Mapping
from math import exp, log

from jobs.planner.view import Account, Quota


def accounts_of(user: str | None, labels: Mapping[str, str]) -> list[Account]:
    """Return every account that a job of this user with these labels may be counted on."""
    return [("user", user or ""), *(("label", f"{key}={value}") for key, value in labels.items())]


class Usage:
    """Decayed use, what is held now included: exact at every moment, however seldom it is asked for."""

    def __init__(self, quotas: Iterable[Quota], *, half_life_s: float) -> None:
        """As in the service, labels without a quota are not counted."""
        self._decay = log(2) / half_life_s
        self._labels = {quota.account for quota in quotas if quota.account[0] == "label"}
        self._held: dict[Account, int] = {}
        self._used: dict[Account, tuple[float, float]] = {}
        """Device-seconds, and when that was true."""

    def hold(self, user: str | None, labels: Mapping[str, str], devices: int, *, at: float) -> None:
        """Note that a job of this user with these labels has so many devices from now on, or, below 0, no more."""
        for account in accounts_of(user, labels):
            if account[0] == "label" and account not in self._labels:
                continue
            self._used[account] = (self._at(account, at), at)
            self._held[account] = self._held.get(account, 0) + devices

    def at(self, moment: float) -> dict[Account, float]:
        """Return the use of each account, in device-seconds."""
        return {account: self._at(account, moment) for account in self._used}

    def _at(self, account: Account, moment: float) -> float:
        used, since = self._used.get(account, (0.0, moment))
        kept = exp(-self._decay * (moment - since))
        # Use at a constant rate tends to rate / decay.
        return used * kept + self._held.get(account, 0) / self._decay * (1 - kept)
