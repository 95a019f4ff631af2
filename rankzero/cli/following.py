"""Following a job on the terminal: a live bar, or lines where there is no terminal."""

import time
from collections.abc import Iterable

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from rankzero.cli.output import in_colour, in_words
from rankzero.models import Job

ACCURACIES = ("val/accuracy", "train/accuracy", "accuracy")
LOSSES = ("train/loss", "val/loss", "loss")


def follow(updates: Iterable[Job], console: Console) -> Job:
    """Show every update until the job is over, and return its last."""
    pace = _Pace()
    if not console.is_terminal:
        return _in_lines(updates, console, pace)
    job: Job | None = None
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=30), TextColumn("{task.fields[text]}"))
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("", total=None, text="")
        for job in updates:
            _draw(bar, task, job, pace)
    assert job is not None, "following yields at least the job as it is"
    return job


def describe(job: Job, eta_s: float | None) -> str:
    """Return epoch, step, loss, accuracy and time left, as far as they are known."""
    progress = job.progress
    if job.reason and not job.is_over:
        return job.reason
    if progress is None or (progress.total_steps or progress.step) is None:
        return ""
    parts = [f"epoch {progress.epoch or 1}/{progress.epochs}", f"step {progress.step or 0}/{progress.total_steps}"]
    if progress.total_steps is None:  # a program of the user's own: it alone knows how much there will be
        parts = [f"step {progress.step}"]
    parts += [f"{label} {value:.4f}" for label, value in _values(job)]
    if eta_s is not None and not job.is_over:
        parts.append(f"ETA {in_words(eta_s)}")
    return "  ".join(parts)


class _Pace:
    """How fast the attempt that runs now goes, from what was seen of it."""

    def __init__(self) -> None:
        self._first: tuple[int, int, float] | None = None

    def eta_s(self, job: Job) -> float | None:
        """Seconds left, or None before there is anything to reckon from."""
        progress = job.progress
        if progress is None or progress.step is None or progress.total_steps is None:
            return None
        now = time.monotonic()
        if self._first is None or self._first[0] != job.attempt:
            self._first = (job.attempt, progress.step, now)
        _, first_step, first_at = self._first
        taken = progress.step - first_step
        return (progress.total_steps - progress.step) * (now - first_at) / taken if taken > 0 else None


def _draw(bar: Progress, task: TaskID, job: Job, pace: _Pace) -> None:
    progress = job.progress
    bar.update(
        task,
        description=f"job {job.id} {in_colour(job.state)}",
        total=progress.total_steps if progress is not None else None,
        completed=(progress.step or 0) if progress is not None else 0,
        text=describe(job, pace.eta_s(job)),
    )


def _in_lines(updates: Iterable[Job], console: Console, pace: _Pace) -> Job:
    shown: tuple[object, ...] | None = None
    job: Job | None = None
    for job in updates:
        eta_s = pace.eta_s(job)
        news = (job.state, job.attempt, job.reason, job.progress and job.progress.epoch)
        if news != shown or job.is_over:
            text = f"job {job.id} {job.state}  {describe(job, eta_s)}".rstrip()
            console.print(text, highlight=False, markup=False, soft_wrap=True)
        shown = news
    assert job is not None, "following yields at least the job as it is"
    return job


def _values(job: Job) -> list[tuple[str, float]]:
    values = job.progress.values if job.progress is not None else {}
    found = []
    for label, names in (("loss", LOSSES), ("accuracy", ACCURACIES)):
        known = [value for name in names if (value := values.get(name)) is not None]
        if known:
            found.append((label, known[0]))
    return found
