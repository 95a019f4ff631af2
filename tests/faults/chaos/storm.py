"""The storm: strikes at instants and in an order drawn by lot, and undoes in time what would not end by itself."""

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.faults.chaos.users import Users
from tests.faults.chaos.world import HOSTS, LEASE_S, World
from tests.faults.matrix.fault import Missed

MEAN_PAUSE_S = 1.0
"""Between two strikes, on average, in seconds."""
STRIKES_PER_JOB = 0.5
STRIKES_AHEAD = 5
"""Strikes keep step with the jobs that are over, so many ahead at most: else a slow machine would get nothing done."""
LONGEST_S = 2 * LEASE_S
"""The longest that an outage lasts, in seconds: some are shorter than the lease, and some longer."""


@dataclass(frozen=True)
class Strike:
    """One kind of strike."""

    name: str
    weight: int
    """How often it comes, beside the others: so many times before all are drawn anew."""
    strike: Callable[["Storm"], str]
    """Strikes, and says whom. Raises Missed where there is nothing to strike now."""


@dataclass(frozen=True)
class _Undo:
    name: str
    due: float
    call: Callable[[], None]


class Storm:
    """Strikes a world. All from one thread, which has to call `turn` often."""

    def __init__(
        self,
        world: World,
        users: Users,
        strikes: Sequence[Strike],
        *,
        draws: random.Random,
        log: Path,
        hold_scale: float,
    ) -> None:
        """Each strike becomes a line of the file `log`. Outages last `hold_scale` of what they else would."""
        self.world = world
        self.users = users
        self.draws = draws
        self.counts: Counter[str] = Counter()
        """How often each kind has struck."""
        self.ended_by_themselves: list[str] = []
        """What ended though nothing had struck it."""
        self._strikes = strikes
        self._to_come: list[Strike] = []
        self._hold_scale = hold_scale
        self._log = log.open("w", buffering=1)
        self._began = time.monotonic()
        self._next_at = self._began
        self._undos: list[_Undo] = []

    def turn(self) -> None:
        """Undo what is due, and strike if it is time for that."""
        for undo in [each for each in self._undos if each.due <= time.monotonic()]:
            self._undo(undo)
        self.see_that_all_runs()
        over = len(self.users.accepted) - len(self.users.open)
        if time.monotonic() < self._next_at or self.counts.total() > STRIKES_AHEAD + STRIKES_PER_JOB * over:
            return
        self._next_at = time.monotonic() + self.draws.expovariate(1 / MEAN_PAUSE_S)
        if not self._to_come:
            # As a pack of cards: drawn each by itself, a rare one might not come at all.
            self._to_come = [each for each in self._strikes for _card in range(each.weight)]
            self.draws.shuffle(self._to_come)
        strike = self._to_come.pop()
        try:
            whom = strike.strike(self)
        except Missed:
            self._to_come.insert(0, strike)
            return
        self.counts[strike.name] += 1
        self.note(f"{strike.name}: {whom}")

    def calm(self) -> None:
        """Undo all that is not over."""
        for undo in sorted(self._undos, key=lambda each: each.due):
            self._undo(undo)
        self.note("calm")

    def see_that_all_runs(self) -> None:
        """Start what has ended by itself, as an init system does, and keep in mind that it had."""
        for name in HOSTS:
            worker = self.world.workers[name]
            if worker.poll() is None or self.is_under_way(f"no worker on {name}"):
                continue
            self._ended_by_itself(f"worker of {name}, with status {worker.returncode}")
            self.world.start_worker(name)
        if not (self.world.api.is_running or self.is_under_way("no API")):
            self._ended_by_itself("API")
            self.world.api.start()

    def close(self) -> None:
        self._log.close()

    def note(self, what: str) -> None:
        """Write a line into the log."""
        self._log.write(f"{time.monotonic() - self._began:8.2f} {what}\n")

    def later(self, name: str, in_s: float, undo: Callable[[], None]) -> None:
        """Have `undo` called in so many seconds, to be over with what `name` says."""
        self._undos.append(_Undo(name, time.monotonic() + in_s, undo))

    def outage_s(self) -> float:
        """Draw how long something is away, in seconds."""
        return self.draws.uniform(0, LONGEST_S) * self._hold_scale

    def is_under_way(self, name: str) -> bool:
        """Whether this is still to be undone."""
        return any(each.name == name for each in self._undos)

    def _ended_by_itself(self, what: str) -> None:
        self.ended_by_themselves.append(what)
        self.note(f"ended by itself: {what}")

    def _undo(self, undo: _Undo) -> None:
        self._undos.remove(undo)
        undo.call()
        self.note(f"over: {undo.name}")
