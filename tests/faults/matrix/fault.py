"""A fault: what strikes the service in one row of the matrix, and how its jobs are to end all the same."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jobs.states import State

if TYPE_CHECKING:
    from tests.faults.matrix.trial import Trial

NEVER = sys.maxsize
"""For `ddp_every`, of what strikes only a program."""


@dataclass(frozen=True)
class Fault:
    """One row of the table."""

    name: str
    """What happens, as the table calls it."""
    strike: Callable[["Trial"], None]
    """Submits the trial's jobs, strikes at an instant that the trial draws, and undoes what would not end by itself."""
    ends: frozenset[State] = frozenset({State.SUCCEEDED})
    """The states in which its jobs may end."""
    attempts: int = 1
    """The most that a job of it may take: one of what stops no run, and one more for each that it does stop."""
    outlasts_lease: bool = False
    """Whether a lease may run out: only where nobody can prove sooner that a run is dead."""
    rounds: int = 1
    """It strikes in each round of so many: more than one for what costs much."""
    ddp_every: int = 10
    """Each trial of so many trains digits by DistributedDataParallel; the others run a program that loads no torch."""

    def strikes_in(self, rounds: int) -> range:
        """The rounds, of so many, in which it strikes."""
        return range(0, rounds, self.rounds)

    @property
    def slug(self) -> str:
        """The name as a test id."""
        return "".join(each if each.isalnum() else "-" for each in self.name.lower()).strip("-")


class Missed(Exception):
    """The job was over before the fault could strike: the trial draws another instant."""
