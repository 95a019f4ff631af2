"""The command that prints what ranks have printed."""

import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from rankzero.cli.options import JobId, Json, Url, connect
from rankzero.cli.output import print_json
from rankzero.errors import UsageError

if TYPE_CHECKING:
    from rankzero.client import Client
    from rankzero.models import LogChunk

POLL_S = 0.5
"""Seconds between two looks for new output."""


def add_log_commands(app: typer.Typer) -> None:
    """Add these commands to the application."""
    app.command()(logs)


def logs(  # noqa: PLR0917  # Typer passes by name; each is an option of the command
    job_id: JobId,
    follow_on: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the job is over.")] = False,
    tail: Annotated[
        int | None, typer.Option("--tail", "-n", min=1, max=10_000, help="Only the last so many lines of each rank.")
    ] = None,
    search: Annotated[str | None, typer.Option(metavar="TEXT", help="Only lines that have this in them.")] = None,
    ignore_case: Annotated[bool, typer.Option("--ignore-case", "-i", help="With --search: in either case.")] = False,
    rank: Annotated[int | None, typer.Option(min=0, help="Only this rank's output.")] = None,
    attempt: Annotated[int | None, typer.Option(min=1, help="Only this attempt's output.")] = None,
    *,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """Print what a job's ranks have printed, each line after its rank's number where there are several."""
    if search is not None and (tail is not None or follow_on):
        raise UsageError(f"--search finds lines of all that is there; it does not go with {'--tail' if tail else '-f'}")
    if ignore_case and search is None:
        raise UsageError("--ignore-case goes with --search")
    with connect(url) as client:
        job = client.get(job_id)
        if search is not None:
            chunks = client.logs(job_id, rank=rank, attempt=attempt, search=search, ignore_case=ignore_case)
        else:
            chunks = _chunks(client, job_id, rank=rank, attempt=attempt, tail=tail, until_over=follow_on)
        if as_json:
            print_json(list(chunks))
            return
        lines = _Lines(with_rank=rank is None and job.world_size != 1, whole=search is not None)
        printed = False
        for chunk in chunks:
            lines.add(chunk)
            printed = True
        lines.close()
        if not printed:
            # A run of the built-in recipes prints nothing unless something is odd: its numbers are metrics.
            told = "have printed nothing" if search is None else f"have printed no line with {search!r} in it"
            Console(stderr=True).print(f"the ranks of job {job_id} {told}", highlight=False, markup=False)


def _chunks(
    client: "Client", job_id: int, *, rank: int | None, attempt: int | None, tail: int | None, until_over: bool
) -> "Iterator[LogChunk]":
    after = 0
    while True:
        # Asked before the output is read: what a job printed is shipped before its end is written.
        is_over = client.get(job_id).is_over
        for chunk in client.logs(job_id, rank=rank, attempt=attempt, after=after, tail=tail):
            after, tail = chunk.id, None
            yield chunk
        if is_over or not until_over:
            return
        time.sleep(POLL_S)


class _Lines:
    """Prints pieces of output; with several ranks in whole lines, since pieces end anywhere."""

    def __init__(self, *, with_rank: bool, whole: bool) -> None:
        """`whole`: each piece is a line, whatever it ends with."""
        self._with_rank = with_rank
        self._whole = whole
        self._open: dict[tuple[int, int], str] = {}

    def add(self, chunk: "LogChunk") -> None:
        text = f"{chunk.text.removesuffix(chr(10))}\n" if self._whole else chunk.text
        if not self._with_rank:
            sys.stdout.write(text)
            sys.stdout.flush()
            return
        key = (chunk.attempt, chunk.rank)
        *whole, rest = (self._open.pop(key, "") + text).split("\n")
        for line in whole:
            print(f"[rank {chunk.rank}] {line}")
        if rest:
            self._open[key] = rest
        sys.stdout.flush()

    def close(self) -> None:
        for (_attempt, rank), rest in self._open.items():
            print(f"[rank {rank}] {rest}")
