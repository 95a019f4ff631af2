"""Heads: the jobs that are first in the line for what they may use. Only for them are devices set aside."""

from jobs.planner.demand import Demand
from jobs.planner.slots import Slot


class Heads:
    """Which devices the heads so far may use: whoever may use one of these comes after a head, and is none.

    To set devices aside for more jobs costs much and gains nothing. Each of them keeps free devices from all that come
    later, and whom it keeps them from is not the one that has waited for longest. A single head for the whole line
    would be too few: while it waits for one host, small jobs would pass those that wait for another.
    """

    def __init__(self, most: int) -> None:
        self._left = most
        self._awaited: set[Slot] = set()

    def has_room_for(self, demand: Demand) -> bool:
        """Whether a job that can not start may be a head: no head before it may use any of the same devices."""
        if self._left == 0 or demand.is_behind_a_head:
            return False
        # Asked once for each demand: what one head may use stays so throughout the plan.
        demand.is_behind_a_head = not self._awaited.isdisjoint(demand.candidates())
        return not demand.is_behind_a_head

    def add(self, demand: Demand, *, is_settled: bool) -> None:
        """Count a head. One that is settled has devices that come free at once, so that it needs no others."""
        self._left -= 1
        if not is_settled:
            self._awaited.update(demand.candidates())
            demand.is_behind_a_head = True
