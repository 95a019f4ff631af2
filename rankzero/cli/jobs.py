"""The commands that look at jobs: ls, show, events."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankzero.cli.completing import complete_host
from rankzero.cli.console import Console
from rankzero.cli.history import describe_event
from rankzero.cli.options import PATIENCE_S, JobId, Json, Url, connect, parse_moment
from rankzero.cli.output import EXAMPLE, print_job, print_jobs, print_json
from rankzero.cli.spec_file import parse_labels
from rankzero.cli.watching import watch
from rankzero.errors import UsageError

if TYPE_CHECKING:
    from rankzero.models import Job


def add_job_commands(app: typer.Typer) -> None:
    """Add these commands to the application."""
    for command in (ls, show, events):
        app.command()(command)


def ls(  # noqa: PLR0917  # Typer passes by name; each is an option of the command
    state: Annotated[list[str] | None, typer.Option(help="Only jobs in this state; repeat it.")] = None,
    label: Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="Only with this label.")] = None,
    name: Annotated[str | None, typer.Option(help="Only jobs whose name contains this.")] = None,
    user: Annotated[str | None, typer.Option(help="Only jobs for this user.")] = None,
    priority: Annotated[int | None, typer.Option(help="Only jobs of this priority.")] = None,
    recipe: Annotated[str | None, typer.Option(help="Only jobs that train by this recipe.")] = None,
    model: Annotated[str | None, typer.Option(help="Only jobs that train this model.")] = None,
    host: Annotated[
        str | None, typer.Option(help="Only jobs that have run on this host.", autocompletion=complete_host)
    ] = None,
    parent: Annotated[int | None, typer.Option(help="Only jobs cloned from, or begun with, this one.")] = None,
    created_after: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only those submitted since then: 2h ago, or 2026-11-30T06:00.")
    ] = None,
    created_before: Annotated[str | None, typer.Option(metavar="TIME", help="Only those submitted before.")] = None,
    finished_after: Annotated[str | None, typer.Option(metavar="TIME", help="Only those over since then.")] = None,
    sort: Annotated[
        str, typer.Option(help="id, priority, name or created_at; a minus first means descending.")
    ] = "-id",
    limit: Annotated[int, typer.Option(min=1, help="Most jobs to show.")] = 50,
    watched: Annotated[
        bool, typer.Option("--watch", "-w", help="Go on showing them as they are, until Ctrl-C.")
    ] = False,
    *,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """List jobs, the newest first."""
    if watched and as_json:
        raise UsageError("--watch shows a table for people; a pipeline reads GET /events")
    wanted: dict[str, Any] = {
        "state": state,
        "labels": parse_labels(label or []),
        "name": name,
        "user": user,
        "priority": priority,
        "recipe": recipe,
        "model": model,
        "host": host,
        "parent": parent,
        "created_after": parse_moment(created_after),
        "created_before": parse_moment(created_before),
        "finished_after": parse_moment(finished_after),
    }
    wanted = {filter_: value for filter_, value in wanted.items() if value not in (None, "", [])}
    with connect(url, patience_s=0 if watched else PATIENCE_S) as client:

        def read() -> "list[Job]":
            return list(client.list(**wanted, sort=sort, limit=limit))

        if watched:
            watch(read, Console())
            return
        jobs = read()
    if as_json:
        print_json(jobs)
    elif jobs:
        print_jobs(Console(), jobs)
    elif wanted:
        print("no job matches these filters")
    else:
        print(f"no jobs; submit one: rankzero submit {EXAMPLE}")


def show(job_id: JobId, *, as_json: Json = False, url: Url = None) -> None:
    """Show a job, its attempts, its checkpoints and its last warnings."""
    with connect(url) as client:
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
    with connect(url) as client:
        happened = list(client.events(job_id))
    if as_json:
        print_json(happened)
        return
    for event in happened:
        Console().print(describe_event(event), markup=False, highlight=False, soft_wrap=True)
