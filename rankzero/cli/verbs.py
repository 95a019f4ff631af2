"""The commands that act on a job that is there: cancel, pause, resume, retry, priority, label."""

from typing import Annotated

import typer

from rankzero.cli.options import DEVICE_FORMS, JobId, Json, Url
from rankzero.cli.output import labels_of, print_json
from rankzero.cli.spec_file import parse_device
from rankzero.client import Client
from rankzero.errors import UsageError
from rankzero.models import Job


def add_verb_commands(app: typer.Typer) -> None:
    """Add these commands to the application."""
    for command in (cancel, pause, resume, retry, priority, label):
        app.command()(command)


def cancel(job_id: JobId, *, as_json: Json = False, url: Url = None) -> None:
    """Ask for the end of a job; one that is over stays as it is."""
    with Client(url) as client:
        job = client.cancel(job_id)
    ends = f"{job.state} and ends within seconds; see: rankzero show {job_id}"
    _tell(job, job.state if job.is_over else ends, as_json=as_json)


def pause(job_id: JobId, *, as_json: Json = False, url: Url = None) -> None:
    """Have a job save a checkpoint and free its devices, until it is resumed."""
    with Client(url) as client:
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
    with Client(url) as client:
        job = client.resume(job_id, **{name: value for name, value in given.items() if value is not None})
    _tell(job, job.state, as_json=as_json)


def retry(job_id: JobId, *, as_json: Json = False, url: Url = None) -> None:
    """Queue a failed job again, with all of its retries; it goes on from its last checkpoint."""
    with Client(url) as client:
        job = client.retry(job_id)
    _tell(job, job.state, as_json=as_json)


def priority(
    job_id: JobId,
    value: Annotated[int, typer.Argument(metavar="PRIORITY", help="0 to 100; higher starts first.")],
    *,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """Change a job's priority; a waiting one has its new place in the line within seconds."""
    with Client(url) as client:
        job = client.change(job_id, priority=value)
    _tell(job, f"{job.state}, with priority {job.priority}", as_json=as_json)


def label(
    job_id: JobId,
    labels: Annotated[
        list[str], typer.Argument(metavar="KEY=VALUE|KEY-", help="A label to set, or with a minus to take away.")
    ],
    *,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """Set labels of a job, or take them away; those that are not named stay."""
    changes = dict(map(parse_change, labels))
    with Client(url) as client:
        job = client.change(job_id, labels=changes)
    _tell(job, f"labelled {labels_of(job)}" if job.labels else "without labels", as_json=as_json)


def parse_change(word: str) -> tuple[str, str | None]:
    """Return a label to set, or with None one to take away. Raises UsageError."""
    key, equals, value = word.partition("=")
    if equals and key:
        return key, value
    if not equals and word.endswith("-") and len(word) > 1:
        return word.removesuffix("-"), None
    raise UsageError(f"{word!r}: write a label as key=value, or as key- to take it away")


def _tell(job: Job, what: str, *, as_json: bool) -> None:
    if as_json:
        print_json(job)
    else:
        print(f"job {job.id} is {what}")
