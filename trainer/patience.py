"""Patience: how long a run goes on though its epochs better nothing."""

import math


class Patience:
    """Counts the epochs in a row that have not bettered the recipe's metric.

    Every rank counts its own: the metric is the same number on all of them.
    """

    def __init__(self, limit: int | None) -> None:
        """`limit`: epochs after which the run ends early; None for a run that does not."""
        self.limit = limit
        self.best: float | None = None
        self.stale_epochs = 0

    @property
    def is_over(self) -> bool:
        return self.limit is not None and self.stale_epochs >= self.limit

    def take(self, metric: float) -> None:
        """Take in what an epoch's validation has found; an equal metric is no better, nor is one that is no number."""
        if not math.isnan(metric) and (self.best is None or metric > self.best):
            self.best, self.stale_epochs = metric, 0
        else:
            self.stale_epochs += 1

    def reason(self, name: str) -> str:
        """Say why the run ends; `name` is the metric's."""
        best = f", which is {self.best:.4g} at best" if self.best is not None else ""
        return f"{self.stale_epochs} in a row have not bettered {name}{best} (patience={self.limit})"

    def continue_at(self, best: float | None, stale_epochs: int) -> None:
        """Go on as a checkpoint was."""
        self.best = best if best is not None and not math.isnan(best) else None
        self.stale_epochs = stale_epochs
