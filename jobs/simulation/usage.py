"""The use that the fair share goes by: device-seconds of each account, halved for every half-life that passes."""

from collections.abc import Iterable, Mapping
from math import exp, log

from jobs.planner.view import Account


def accounts(user: str | None, labels: Mapping[str, str]) -> list[Account]:
    """Return whose use a job's is."""
    return [("user", user or ""), *(("label", f"{key}={value}") for key, value in labels.items())]


class Usage:
    """Decayed use, what is held now included: exact at every moment, however seldom it is asked for."""

    def __init__(self, *, half_life_s: float) -> None:
        self._decay = log(2) / half_life_s
        self._held: dict[Account, int] = {}
        self._used: dict[Account, tuple[float, float]] = {}
        """Device-seconds, and when that was true."""

    def hold(self, whose: Iterable[Account], devices: int, *, at: float) -> None:
        """Note that these accounts have so many devices more from now on, or, below 0, fewer."""
        for account in whose:
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
