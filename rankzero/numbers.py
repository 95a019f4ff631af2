"""A set of whole numbers in the memory that its pattern takes, not its size: steps that are reported every ten, say."""

from bisect import bisect_right
from typing import NamedTuple

MOST_RUNS = 10_000
"""Of one set. Beyond them the lowest numbers are forgotten: two at least for each run."""


class Run(NamedTuple):
    """Numbers from the first to the last, `stride` apart; of a single number the stride means nothing."""

    first: int
    last: int
    stride: int


class Numbers:
    """The numbers that were added, as runs in their order, none of which begins within another."""

    def __init__(self) -> None:
        self._runs: list[Run] = []

    def add(self, number: int) -> bool:
        """Add a number; return whether it was not there."""
        index = bisect_right(self._runs, number, key=lambda run: run.first) - 1
        run = self._runs[index] if index >= 0 else None
        if run is not None and number <= run.last:
            steps, beside = divmod(number - run.first, run.stride)
            if not beside:
                return False
            below = run.first + steps * run.stride
            self._runs[index : index + 1] = [
                run._replace(last=below),
                Run(number, number, 1),
                run._replace(first=below + run.stride),
            ]
        elif run is not None and (run.first == run.last or number == run.last + run.stride):
            self._runs[index] = Run(run.first, number, number - run.last)
        else:
            self._runs.insert(index + 1, Run(number, number, 1))
        if len(self._runs) > MOST_RUNS:
            del self._runs[: len(self._runs) - MOST_RUNS]
        return True
