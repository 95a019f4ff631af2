"""The commands about jobs: submit, ls, show, logs, cancel."""

import itertools
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from rankzero.cli import exits
from rankzero.cli.following import follow
from rankzero.cli.output import EXAMPLE, print_job, print_jobs, print_json
from rankzero.cli.spec_file import here, merged, parse_labels, parse_settings, read_spec
from rankzero.client import Client
from rankzero.models import Job, LogChunk

Url = Annotated[str | None, typer.Option("--url", help="The service; else RANKZERO_URL, else this machine's.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
JobId = Annotated[int, typer.Argument(help="Id of the job.")]

POLL_S = 0.5
"""Seconds between two looks for new output."""


def add_job_commands(app: typer.Typer) -> None:
    """Add these commands to the application."""
    for command in (submit, ls, show, logs, cancel):
        app.command()(command)


def submit(  # noqa: PLR0917  # Typer passes by name; each is an option of the command
    file: Annotated[Path | None, typer.Argument(help="Job spec as YAML or JSON; `-` reads standard input.")] = None,
    model: Annotated[str | None, typer.Option(help="Model, such as resnet50.")] = None,
    data: Annotated[str | None, typer.Option(help="Data set by name, or an image folder (with a slash in it).")] = None,
    device: Annotated[str | None, typer.Option(help='Devices: "0,1", "cuda:0", "cpu", "auto".')] = None,
    nproc_per_node: Annotated[int | None, typer.Option(help='Ranks for --device "cpu".')] = None,
    epochs: Annotated[int | None, typer.Option(help="Passes over the training set.")] = None,
    batch: Annotated[int | None, typer.Option(help="Global batch in samples.")] = None,
    lr: Annotated[float | None, typer.Option(help="Learning rate at the start.")] = None,
    recipe: Annotated[str | None, typer.Option(help="How to build model, data, loss and metrics.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="FIELD=VALUE", help="Any field of `train`, or of its `options` as options.NAME; repeat it."
        ),
    ] = None,
    name: Annotated[str | None, typer.Option(help="A name for people.")] = None,
    label: Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="A label; repeat it.")] = None,
    priority: Annotated[int | None, typer.Option(help="0 to 100; higher starts first.")] = None,
    max_retries: Annotated[int | None, typer.Option(help="How often a lost run is tried again.")] = None,
    *,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Do not follow the job.")] = False,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """Submit a job and follow it to its end; the exit code is the job's result.

    Flags come on top of the file. Ctrl-C stops following, not the job.
    """
    spec = merged(
        read_spec(file),
        job={
            "device": device,
            "nproc_per_node": nproc_per_node,
            "name": name,
            "labels": parse_labels(label or []),
            "priority": priority,
            "max_retries": max_retries,
        },
        train={"model": model, "data": here(data), "epochs": epochs, "batch": batch, "lr": lr, "recipe": recipe},
        settings=parse_settings(settings or []),
    )
    # With --json, what is for people goes to standard error.
    console = Console(stderr=as_json)
    with Client(url) as client:
        job = client.submit(spec)
        console.print(f"job {job.id} {job.name} is queued", highlight=False, markup=False)
        for warning in job.warnings:
            console.print(f"warning: {warning}", highlight=False, markup=False)
        if not detach:
            job = _followed(client, job, console)
        if as_json:
            print_json(job)
        elif not detach:
            print_job(console, job, attempts=client.attempts(job.id), checkpoints=tuple(client.checkpoints(job.id)))
    raise typer.Exit(exits.OK if detach else exits.of_job(job))


def ls(
    state: Annotated[list[str] | None, typer.Option(help="Only jobs in this state; repeat it.")] = None,
    label: Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="Only with this label.")] = None,
    name: Annotated[str | None, typer.Option(help="Only jobs whose name contains this.")] = None,
    sort: Annotated[
        str, typer.Option(help="id, priority, name or created_at; a minus first means descending.")
    ] = "-id",
    limit: Annotated[int, typer.Option(min=1, help="Most jobs to show.")] = 50,
    *,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """List jobs, the newest first."""
    with Client(url) as client:
        found = client.list(state=state or (), labels=parse_labels(label or []), name=name, sort=sort)
        jobs = list(itertools.islice(found, limit))
    if as_json:
        print_json(jobs)
    elif jobs:
        print_jobs(Console(), jobs)
    else:
        print(f"no jobs; submit one: rankzero submit {EXAMPLE}")


def show(job_id: JobId, *, as_json: Json = False, url: Url = None) -> None:
    """Show a job, its attempts and its checkpoints."""
    with Client(url) as client:
        job = client.get(job_id)
        attempts = client.attempts(job_id)
        checkpoints = tuple(client.checkpoints(job_id))
    if as_json:
        print_json(
            job.model_dump(mode="json")
            | {
                "attempts": [attempt.model_dump(mode="json") for attempt in attempts],
                "checkpoints": [checkpoint.model_dump(mode="json") for checkpoint in checkpoints],
            }
        )
    else:
        print_job(Console(), job, attempts=attempts, checkpoints=checkpoints)


def logs(
    job_id: JobId,
    follow_on: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the job is over.")] = False,
    rank: Annotated[int | None, typer.Option(min=0, help="Only this rank's output.")] = None,
    attempt: Annotated[int | None, typer.Option(min=1, help="Only this attempt's output.")] = None,
    *,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """Print what a job's ranks have printed, each line after its rank's number where there are several."""
    with Client(url) as client:
        job = client.get(job_id)
        chunks = _chunks(client, job_id, rank=rank, attempt=attempt, until_over=follow_on)
        if as_json:
            print_json(list(chunks))
            return
        lines = _Lines(with_rank=rank is None and job.world_size != 1)
        printed = False
        for chunk in chunks:
            lines.add(chunk)
            printed = True
        lines.close()
        if not printed:
            # A run of the built-in recipes prints nothing unless something is odd: its numbers are metrics.
            Console(stderr=True).print(f"the ranks of job {job_id} have printed nothing", highlight=False)


def cancel(job_id: JobId, *, as_json: Json = False, url: Url = None) -> None:
    """Ask for the end of a job; one that is over stays as it is."""
    with Client(url) as client:
        job = client.cancel(job_id)
    if as_json:
        print_json(job)
    elif job.is_over:
        print(f"job {job.id} is {job.state}")
    else:
        print(f"job {job.id} is {job.state} and ends within seconds; see: rankzero show {job.id}")


def _followed(client: Client, job: Job, console: Console) -> Job:
    try:
        return follow(client.follow(job.id), console)
    except KeyboardInterrupt:
        way_back = f"job {job.id} goes on; see it: rankzero show {job.id}; end it: rankzero cancel {job.id}"
        console.print(way_back, highlight=False)
        raise typer.Exit(exits.INTERRUPTED) from None


def _chunks(
    client: Client, job_id: int, *, rank: int | None, attempt: int | None, until_over: bool
) -> Iterator[LogChunk]:
    after = 0
    while True:
        # Asked before the output is read: what a job printed is shipped before its end is written.
        is_over = client.get(job_id).is_over
        for chunk in client.logs(job_id, rank=rank, attempt=attempt, after=after):
            after = chunk.id
            yield chunk
        if is_over or not until_over:
            return
        time.sleep(POLL_S)


class _Lines:
    """Prints pieces of output; with several ranks in whole lines, since pieces end anywhere."""

    def __init__(self, *, with_rank: bool) -> None:
        self._with_rank = with_rank
        self._open: dict[tuple[int, int], str] = {}

    def add(self, chunk: LogChunk) -> None:
        if not self._with_rank:
            sys.stdout.write(chunk.text)
            sys.stdout.flush()
            return
        key = (chunk.attempt, chunk.rank)
        *whole, rest = (self._open.pop(key, "") + chunk.text).split("\n")
        for line in whole:
            print(f"[rank {chunk.rank}] {line}")
        if rest:
            self._open[key] = rest
        sys.stdout.flush()

    def close(self) -> None:
        for (_attempt, rank), rest in self._open.items():
            print(f"[rank {rank}] {rest}")
