"""The command that prints what ranks have printed."""

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from rankzero.cli.console import Console
from rankzero.cli.options import FOLLOWING_S, PATIENCE_S, JobId, Json, Url, connect
from rankzero.cli.output import print_json
from rankzero.errors import UsageError

if TYPE_CHECKING:
    from rankzero.client import Client
    from rankzero.models import LogChunk


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
    with connect(url, patience_s=FOLLOWING_S if follow_on else PATIENCE_S) as client:
        job = client.get(job_id)
        if follow_on and not job.is_over:
            chunks = _followed(client, job_id, rank=rank, attempt=attempt, tail=tail)
        else:
            chunks = client.logs(job_id, rank=rank, attempt=attempt, tail=tail, search=search, ignore_case=ignore_case)
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
            told = "nothing" if search is None else f"no line with {search!r} in it"
            who = f"rank {rank} of job {job_id} has" if rank is not None else f"the ranks of job {job_id} have"
            when = "" if attempt is None else f" in attempt {attempt}"
            Console(stderr=True).print(f"{who} printed {told}{when}", highlight=False, markup=False)


def _followed(
    client: "Client", job_id: int, *, rank: int | None, attempt: int | None, tail: int | None
) -> "Iterator[LogChunk]":
    """Yield the output, or the end of it, and then what comes, until the job is over: each piece once."""
    from rankzero.models import TERMINAL
    from rankzero.news import EventNews, Hello, LogNews, Reset

    def wanted(chunk: "LogChunk") -> bool:
        return rank in (None, chunk.rank) and attempt in (None, chunk.attempt)

    # By where they begin, not by their ids: those of two hosts come in no order, and of a tail the first is a part.
    told: dict[tuple[int, int], int] = {}

    def fresh(chunks: "Iterable[LogChunk]") -> "Iterator[LogChunk]":
        for chunk in chunks:
            key = (chunk.attempt, chunk.rank)
            if wanted(chunk) and chunk.offset > told.get(key, -1):
                told[key] = chunk.offset
                yield chunk

    for news in client.stream(jobs=[job_id], topics=["jobs", "logs"]):
        if isinstance(news, (Hello, Reset)):
            # Asked before the output is read: what a job printed is shipped before its end is written.
            is_over = client.get(job_id).is_over
            yield from fresh(client.logs(job_id, rank=rank, attempt=attempt, tail=tail))
            if is_over:
                return
            tail = None  # after a reset all that was missed is wanted
        elif isinstance(news, LogNews):
            yield from fresh(news.items)
        elif isinstance(news, EventNews) and news.event.to_state in TERMINAL:
            return


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
