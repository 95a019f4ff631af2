"""What has become of a job so far: its times, its failure, its events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rankzero.cli.wording import in_words, since

if TYPE_CHECKING:
    from rankzero.models import Attempt, Event, Job

MOST_WARNINGS = 5
"""So many are shown with a job: the last ones."""


def times_of(job: Job, attempts: Sequence[Attempt]) -> list[tuple[str, str]]:
    """Return since when a job waits, when it started and ended, and when it will end as far as that can be foretold."""
    lines = []
    if job.state == "queued" and job.queued_at is not None:
        lines.append(("waits since", since(job.queued_at)))
    if job.started_at is not None:
        lines.append(("started", since(job.started_at)))
    if job.finished_at is not None:
        lasted = ""
        if job.started_at is not None:
            lasted = f", {in_words((job.finished_at - job.started_at).total_seconds())} after its start"
        lines.append(("ended", f"{since(job.finished_at)}{lasted}"))
    left_s = seconds_left(job, attempts)
    if left_s is not None:
        lines.append(("ends", f"in about {in_words(left_s)}, at its pace so far"))
    return lines


def seconds_left(job: Job, attempts: Sequence[Attempt]) -> float | None:
    """Return how long a running job still takes by the pace of its attempt; None where nothing is known of that."""
    progress, attempt = job.progress, attempts[-1] if attempts else None
    if job.state != "running" or progress is None or attempt is None or attempt.started_at is None:
        return None
    if progress.step is None or progress.total_steps is None:
        return None
    taken = progress.step - (attempt.resumed_step or 0)
    if taken <= 0:
        return None
    trained_s = (datetime.now(UTC) - attempt.started_at).total_seconds()
    return max(progress.total_steps - progress.step, 0) * trained_s / taken


def name_of_failure(job: Job, attempts: Sequence[Attempt]) -> str:
    """Return what a job's failure is: that of the job, or of an attempt with others after it."""
    if job.state == "failed":
        return "failure"
    failed = [attempt.number for attempt in attempts if attempt.failure is not None]
    return f"attempt {failed[-1]} failed" if failed else "failed before"


def warnings_among(events: Iterable[Event]) -> Sequence[Event]:
    """Return the last few warnings and errors that were logged."""
    logged = [event for event in events if event.kind == "log" and "message" in event.detail]
    return [event for event in logged if event.detail.get("level") in ("warning", "error")][-MOST_WARNINGS:]


def describe_event(event: Event) -> str:
    """Return an event in a line: when, in which attempt, and what."""
    words = [] if event.kind in event.detail else [event.kind]
    if event.from_state is not None:
        words = [f"{event.from_state} -> {event.to_state}"]
    # Figures of each class and the like are for --json.
    plain = {name: value for name, value in event.detail.items() if not isinstance(value, (dict, list))}
    message = plain.pop("message", None)
    words += [f"{name}={value}" for name, value in plain.items() if value is not None]
    words += [
        f"{name}: {_in_short(value['from'])} -> {_in_short(value['to'])}"
        for name, value in event.detail.items()
        if isinstance(value, dict) and value.keys() == {"from", "to"}
    ]
    line = f"{event.at.isoformat()}  attempt {event.attempt}  {' '.join(words)}"
    return line if message is None else f"{line}: {' '.join(str(message).split())}"


def _in_short(value: object) -> str:
    """A value that was changed, labels among them."""
    if isinstance(value, dict):
        return ",".join(f"{key}={each}" for key, each in value.items()) or "none"
    return "none" if value is None else str(value)
