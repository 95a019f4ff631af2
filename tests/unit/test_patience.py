"""When a run has had enough of epochs that better nothing."""

import math

import pytest

from trainer.patience import Patience


def stops_after(limit: int | None, *metrics: float) -> int | None:
    """The epoch, from 1, after which the run ends early."""
    patience = Patience(limit)
    for epoch, metric in enumerate(metrics, start=1):
        patience.take(metric)
        if patience.is_over:
            return epoch
    return None


@pytest.mark.parametrize(
    ("limit", "metrics", "expected"),
    [
        (2, (0.5, 0.6, 0.55, 0.58), 4),
        (2, (0.5, 0.4, 0.6, 0.6, 0.7), None),
        (2, (0.5, 0.5, 0.5), 3),  # equal is no better
        (1, (0.5, math.nan, 0.6), 2),
        (2, (math.nan, 0.1, 0.2), None),
        (None, (0.5, 0.1, 0.1, 0.1), None),
    ],
)
def test_a_run_ends_after_so_many_epochs_in_a_row_that_better_nothing(
    limit: int | None, metrics: tuple[float, ...], expected: int | None
) -> None:
    assert stops_after(limit, *metrics) == expected


def test_a_continued_count_goes_on_where_it_was() -> None:
    patience = Patience(3)
    patience.continue_at(0.9, 2)
    over = [patience.is_over]
    for metric in (0.85, 0.95):
        patience.take(metric)
        over.append(patience.is_over)
    assert over == [False, True, False]
    assert (patience.best, patience.stale_epochs) == (0.95, 0)
