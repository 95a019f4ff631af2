"""The commands that act on a job that is there: cancel, pause, resume, retry, set."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from rankzero.cli.options import DEVICE_FORMS, JobId, Json, Url, connect, parse_id
from rankzero.cli.output import labels_of, print_answer
from rankzero.cli.spec_file import parse_device
from rankzero.errors import UsageError

if TYPE_CHECKING:
    from rankzero.models import Job

LABEL = "label."


def add_verb_commands(app: typer.Typer) -> None:
    """Add these commands to the application."""
    for command in (cancel, pause, resume, retry):
        app.command()(command)
    app.command("set")(change)


def cancel(job_id: JobId, *, as_json: Json = False, url: Url = None) -> None:
    """Ask for the end of a job; one that is over stays as it is."""
    with connect(url) as client:
        job = client.cancel(job_id)
    ends = f"{job.state} and ends within seconds; see: rankzero show {job_id}"
    _tell(job, job.state if job.is_over else ends, as_json=as_json)


def pause(job_id: JobId, *, as_json: Json = False, url: Url = None) -> None:
    """Have a job save a checkpoint and free its devices, until it is resumed."""
    with connect(url) as client:
        job = client.pause(job_id)
    saves = f"{job.state}, and is paused once it has saved; see: rankzero show {job_id}"
    way_on = f"paused; let it go on: rankzero resume {job_id}"
    _tell(job, way_on if job.state == "paused" else saves, as_json=as_json)


def resume(
    job_id: JobId,
    *,
    device: Annotated[str | None, typer.Option(help=f"Go on on these devices: {DEVICE_FORMS}.")] = None,
    nproc_per_node: Annotated[int | None, typer.Option(help="Ranks, with --device cpu.")] = None,
    host: Annotated[str | None, typer.Option(help="Go on on this host.")] = None,
    nodes: Annotated[int | None, typer.Option(help="Go on on so many hosts.")] = None,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """Queue a paused job again; it goes on from its last checkpoint, if you say so on other devices or hosts."""
    given = {"device": parse_device(device), "nproc_per_node": nproc_per_node, "host": host, "nodes": nodes}
    with connect(url) as client:
        job = client.resume(job_id, **{name: value for name, value in given.items() if value is not None})
    _tell(job, job.state, as_json=as_json)


def retry(job_id: JobId, *, as_json: Json = False, url: Url = None) -> None:
    """Queue a failed job again, with all of its retries; it goes on from its last checkpoint."""
    with connect(url) as client:
        job = client.retry(job_id)
    _tell(job, job.state, as_json=as_json)


def change(
    job_id: JobId,
    changes: Annotated[
        list[str],
        typer.Argument(
            metavar="priority=N|label.KEY=VALUE|label.KEY-",
            help="Another priority (0 to 100; higher starts first), a label to set, or with a minus to take away.",
        ),
    ],
    *,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """Change the priority or labels of a job; what is not named stays.

    A waiting job has its new place in the line within seconds.
    """
    priority, labels = parse_changes(changes)
    with connect(url) as client:
        job = client.change(job_id, priority=priority, labels=labels or None)
    words = [
        job.state,
        f"with priority {job.priority}",
        f"labelled {labels_of(job)}" if job.labels else "without labels",
    ]
    _tell(job, ", ".join(words), as_json=as_json)


def parse_changes(words: Sequence[str]) -> tuple[int | None, dict[str, str | None]]:
    """Return the priority, if one is given, and the labels to set, or with None to take away. Raises UsageError."""
    priority: int | None = None
    labels: dict[str, str | None] = {}
    for word in words:
        field, equals, value = word.partition("=")
        if field == "priority" and parse_id(value) is not None:
            priority = parse_id(value)
        elif field.startswith(LABEL) and equals and field != LABEL:
            labels[field.removeprefix(LABEL)] = value
        elif field.startswith(LABEL) and not equals and field.endswith("-") and field != f"{LABEL}-":
            labels[field.removeprefix(LABEL).removesuffix("-")] = None
        else:
            raise UsageError(
                f"{word!r:.100}: write priority=50, label.team=vision, or label.team- to take a label away"
            )
    return priority, labels


def _tell(job: "Job", what: str, *, as_json: bool) -> None:
    print_answer(job, f"job {job.id} is {what}", as_json=as_json)
