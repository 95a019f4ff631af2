"""The commands that look at jobs: ls, show, events, logs."""

import itertools
import sys
import time
from collections.abc import Iterator
from typing import Annotated

import typer
from rich.console import Console

from rankzero.cli.history import describe_event
from rankzero.cli.options import JobId, Json, Url
from rankzero.cli.output import EXAMPLE, print_job, print_jobs, print_json
from rankzero.cli.spec_file import parse_labels
from rankzero.client import Client
from rankzero.models import LogChunk

POLL_S = 0.5
"""Seconds between two looks for new output."""


def add_job_commands(app: typer.Typer) -> None:
    """Add these commands to the application."""
    for command in (ls, show, events, logs):
        app.command()(command)


def ls(  # noqa: PLR0917  # Typer passes by name; each is an option of the command
    state: Annotated[list[str] | None, typer.Option(help="Only jobs in this state; repeat it.")] = None,
    label: Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="Only with this label.")] = None,
    name: Annotated[str | None, typer.Option(help="Only jobs whose name contains this.")] = None,
    user: Annotated[str | None, typer.Option(help="Only jobs for this user.")] = None,
    parent: Annotated[int | None, typer.Option(help="Only jobs cloned from, or begun with, this one.")] = None,
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
        labels = parse_labels(label or [])
        found = client.list(state=state or (), labels=labels, name=name, user=user, parent=parent, sort=sort)
        jobs = list(itertools.islice(found, limit))
    if as_json:
        print_json(jobs)
    elif jobs:
        print_jobs(Console(), jobs)
    elif state or label or name or user or parent is not None:
        print("no job matches these filters")
    else:
        print(f"no jobs; submit one: rankzero submit {EXAMPLE}")


def show(job_id: JobId, *, as_json: Json = False, url: Url = None) -> None:
    """Show a job, its attempts, its checkpoints and its last warnings."""
    with Client(url) as client:
        job = client.get(job_id)
        attempts = client.attempts(job_id)
        checkpoints = tuple(client.checkpoints(job_id))
        happened = () if as_json else tuple(client.events(job_id))
    if as_json:
        print_json(
            job.model_dump(mode="json")
            | {
                "attempts": [attempt.model_dump(mode="json") for attempt in attempts],
                "checkpoints": [checkpoint.model_dump(mode="json") for checkpoint in checkpoints],
            }
        )
    else:
        print_job(Console(), job, attempts=attempts, checkpoints=checkpoints, events=happened)


def events(job_id: JobId, *, as_json: Json = False, url: Url = None) -> None:
    """Print what has happened to a job, oldest first: states, changes, warnings."""
    with Client(url) as client:
        happened = list(client.events(job_id))
    if as_json:
        print_json(happened)
        return
    for event in happened:
        Console().print(describe_event(event), markup=False, highlight=False, soft_wrap=True)


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
