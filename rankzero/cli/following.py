"""Following a job on the terminal: a live bar, or lines where there is no terminal, or a dumb one."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn
from rich.table import Column
from rich.text import Text

from rankzero.cli.console import Console
from rankzero.cli.output import in_colour, in_figures
from rankzero.cli.wording import in_words

if TYPE_CHECKING:
    from rankzero.models import Job


def follow(updates: Iterable[Job], console: Console) -> Job:
    """Show every update until the job is over, and return its last."""
    pace = _Pace()
    if not console.can_redraw:
        return _in_lines(updates, console, pace)
    job: Job | None = None
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=12), TextColumn("{task.fields[text]}"), _Metrics())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("", total=None, text="", metrics="")
        for job in updates:
            _draw(bar, task, job, pace)
    assert job is not None, "following yields at least the job as it is"
    return job


def describe(job: Job, eta_s: float | None) -> str:
    """Return epoch, step and time left, as far as they are known, or what the job waits for."""
    progress = job.progress
    if job.reason and not job.is_over:
        return job.reason
    if progress is None or (progress.total_steps or progress.step) is None:
        return ""
    parts = [f"epoch {progress.epoch or 1}/{progress.epochs}", f"step {progress.step or 0}/{progress.total_steps}"]
    if progress.total_steps is None:  # a program of the user's own: it alone knows how much there will be
        parts = [f"step {progress.step}"]
    if eta_s is not None and not job.is_over:
        parts.append(f"ETA {in_words(eta_s)}")
    return "  ".join(parts)


def metrics_of(job: Job) -> str:
    """Return the latest training loss and validation, whatever the recipe measures; of a script all that it told."""
    if job.progress is None or (job.reason and not job.is_over):
        return ""
    values = job.progress.values
    if job.spec["train"].get("recipe") != "script":
        values = {name: values[name] for name in values if name == "train/loss" or name.startswith("val/")}
    return in_figures(values)


class _Metrics(ProgressColumn):
    """The metrics in one line: what a narrow terminal has no room for is cut here, not at the step or the time left."""

    def __init__(self) -> None:
        super().__init__(Column(no_wrap=False))

    def render(self, task: Task) -> Text:
        return Text(task.fields["metrics"], no_wrap=True, overflow="ellipsis")


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
        text=escape(describe(job, pace.eta_s(job))),
        metrics=metrics_of(job),
    )


def _in_lines(updates: Iterable[Job], console: Console, pace: _Pace) -> Job:
    shown: tuple[object, ...] | None = None
    job: Job | None = None
    for job in updates:
        eta_s = pace.eta_s(job)
        news = (job.state, job.attempt, job.reason, job.progress and job.progress.epoch)
        if news != shown or job.is_over:
            parts = (f"job {job.id} {job.state}", describe(job, eta_s), metrics_of(job))
            console.print("  ".join(filter(None, parts)), highlight=False, markup=False, soft_wrap=True)
        shown = news
    assert job is not None, "following yields at least the job as it is"
    return job
