"""Pace: what is foretold of a run from how fast it went; pure arithmetic on what attempts and progress say."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Try:
    """An attempt, as far as its pace goes."""

    created_at: datetime
    started_at: datetime | None
    """When it began to train."""
    ended_at: datetime | None
    """When its ranks had ended."""
    resumed_step: int | None


def trained_s(tries: Iterable[Try], now: datetime) -> float:
    """Return how many seconds these attempts have trained: what counts towards a time limit."""
    spans = [(each.ended_at or now) - each.started_at for each in tries if each.started_at is not None]
    return sum(max(span.total_seconds(), 0.0) for span in spans)


def run_s(tries: Iterable[Try], progress: Mapping[str, Any] | None, *, from_step: int) -> float | None:
    """Return how long another attempt will take that continues from `from_step`, start included, in seconds.

    By the newest of the attempts, all of which have ended, and the progress it made. None where that says nothing: it
    took no step, or its steps have no known end.
    """
    newest = max(tries, key=lambda each: each.created_at, default=None)
    if newest is None or newest.started_at is None or newest.ended_at is None:
        return None
    step_s = _step_s(newest, progress, newest.ended_at)
    total = _steps(progress, "total_steps")
    if step_s is None or total is None:
        return None
    start_s = (newest.started_at - newest.created_at).total_seconds()
    return max(start_s, 0.0) + max(total - from_step, 0) * step_s


def left_s(running: Try, progress: Mapping[str, Any] | None, now: datetime) -> float | None:
    """Return in how many seconds a running attempt will end by its pace since its start. None where that is unknown."""
    step_s = _step_s(running, progress, now)
    total, step = _steps(progress, "total_steps"), _steps(progress, "step")
    if step_s is None or total is None or step is None:
        return None
    return max(total - step, 0) * step_s


def sooner(first: float | None, second: float | None) -> float | None:
    """Return the smaller of two, of which either may be unknown."""
    known = [each for each in (first, second) if each is not None]
    return min(known, default=None)


def _step_s(run: Try, progress: Mapping[str, Any] | None, until: datetime) -> float | None:
    """Seconds for each step, evaluation and saving included."""
    step = _steps(progress, "step")
    if run.started_at is None or step is None:
        return None
    taken = step - (run.resumed_step or 0)
    return max((until - run.started_at).total_seconds(), 0.0) / taken if taken > 0 else None


def _steps(progress: Mapping[str, Any] | None, name: str) -> int | None:
    """A number of steps that the run itself reported: a program of the user's own may report anything."""
    value = (progress or {}).get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
