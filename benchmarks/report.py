"""What a benchmark prints: lines with their figures."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """One measured thing, and its peer where it has one."""

    what: str
    figure: str
    peer: str = ""
    ratio: float | None = None


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` of the values do not exceed."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def spread(values: Sequence[float], unit: str) -> str:
    """Median with the smallest and the largest value."""
    return f"{statistics.median(values):.3g} {unit} ({min(values):.3g} to {max(values):.3g}, n={len(values)})"
