"""The command that shows the metrics of a job: the course of each in a line, or all values for programs."""

import csv
import sys
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Annotated

import typer

from rankzero.cli.console import Console, plain
from rankzero.cli.options import JobId, Json, Url, connect
from rankzero.cli.output import figure, print_json
from rankzero.cli.tables import table
from rankzero.errors import UsageError

if TYPE_CHECKING:
    from rankzero.models import Metric, MetricName

COURSE_POINTS = 60
"""Values of each metric that its line is made of; the lowest and the highest are among what the service picks."""
COURSE_WIDTH = 20
BARS = "▁▂▃▄▅▆▇█"
GAP = "x"
"""A value that is not finite."""
COLUMNS = ("name", "step", "epoch", "attempt", "at", "value", "kind")
"""As the service itself writes CSV."""


def add_metric_commands(app: typer.Typer) -> None:
    """Add these commands to the application."""
    app.command()(metrics)


def metrics(
    job_id: JobId,
    name: Annotated[list[str] | None, typer.Option(help="Only the metric of this name; repeat it.")] = None,
    from_step: Annotated[int, typer.Option(min=0, help="Only values after at least this many steps.")] = 0,
    points: Annotated[
        int | None,
        typer.Option(
            min=2, max=10_000, help="With --csv or --json: at most so many values of each, its peaks among them."
        ),
    ] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print the values as CSV.")] = False,
    *,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """Show each metric of a job: its last value, its lowest and highest, and its course."""
    if as_csv and as_json:
        raise UsageError("--csv and --json: take one of them")
    is_whole = as_csv or as_json
    if points is not None and not is_whole:
        raise UsageError("--points thins what --csv or --json prints")
    with connect(url) as client:
        found = client.metrics(
            job_id, names=name or (), from_step=from_step, points=points if is_whole else COURSE_POINTS
        )
        if as_csv:
            _print_csv(found)
        elif as_json:
            print_json(list(found))
        elif not _print_courses(Console(), found):
            print(plain(_describe_none(job_id, name or (), client.metric_names(job_id))))


def _print_csv(values: "Iterable[Metric]") -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(COLUMNS)
    for each in values:
        at = each.at.isoformat().replace("+00:00", "Z")
        writer.writerow([each.name, each.step, each.epoch, each.attempt, at, each.value, each.kind])
    sys.stdout.flush()


def _describe_none(job_id: int, asked: Sequence[str], told: "Sequence[MetricName]") -> str:
    """Say why none is shown: for the names that were asked for, or because there is none."""
    if not told:
        return f"job {job_id} has told of no metric"
    names = ", ".join(each.name for each in told)
    return f"job {job_id} has no value of {', '.join(asked) or 'so late a step'}; it has told of {names}"


def _print_courses(console: Console, values: "Iterable[Metric]") -> bool:
    """Return whether there are any."""
    listed = table("METRIC", "STEP", "LAST", "LOWEST", "HIGHEST", "COURSE")
    # Bars are for who looks at them; a file, or a terminal without such letters, has none.
    draws = console.is_terminal and "utf" in console.encoding.lower()
    for name, series in groupby(values, key=lambda each: each.name):
        whole = list(series)
        finite = [each.value for each in whole if each.value is not None]
        last = whole[-1]
        extremes = (figure(min(finite)), figure(max(finite))) if finite else ("", "")
        shown = figure(last.value) if last.value is not None else last.kind or "not finite"
        listed.add_row(
            name, str(last.step), shown, *extremes, course_of([each.value for each in whole]) if draws else ""
        )
    if listed.row_count:
        console.print(listed, markup=False, highlight=False)
    return listed.row_count > 0


def course_of(values: Sequence[float | None], *, width: int = COURSE_WIDTH) -> str:
    """Return a series as bars between its lowest and highest value: of each stretch the last one."""
    finite = [value for value in values if value is not None]
    if not finite:
        return GAP * min(width, len(values))
    low, high = min(finite), max(finite)
    picked = (
        [values[(index + 1) * len(values) // width - 1] for index in range(width)] if len(values) > width else values
    )
    return "".join(GAP if value is None else BARS[_height(value, low, high)] for value in picked)


def _height(value: float, low: float, high: float) -> int:
    # Halved first: what lies between the lowest and the highest float is no float.
    span = high / 2 - low / 2
    return 0 if span == 0 else min(len(BARS) - 1, int((value / 2 - low / 2) / span * len(BARS)))
