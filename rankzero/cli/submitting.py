"""The commands that describe a job: submit, clone, plan."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from rankzero.cli import exits
from rankzero.cli.following import follow
from rankzero.cli.options import (
    Detach,
    JobId,
    Json,
    Settings,
    StartFrom,
    StartMode,
    Url,
    login_name,
    parse_duration,
    parse_start,
)
from rankzero.cli.output import print_job, print_json, print_plan
from rankzero.cli.spec_file import here, merged, parse_labels, parse_settings, read_spec
from rankzero.client import Client
from rankzero.models import Job

File = Annotated[Path | None, typer.Argument(help="Job spec as YAML or JSON; `-` reads standard input.")]


def add_submitting_commands(app: typer.Typer) -> None:
    """Add these commands to the application."""
    for command in (submit, clone, plan):
        app.command()(command)


def submit(  # noqa: PLR0917  # Typer passes by name; each is an option of the command
    file: File = None,
    model: Annotated[str | None, typer.Option(help="Model, such as resnet50.")] = None,
    data: Annotated[str | None, typer.Option(help="Data set by name, or an image folder (with a slash in it).")] = None,
    device: Annotated[str | None, typer.Option(help='Devices: "0,1", "cuda:0", "cpu", "auto".')] = None,
    nproc_per_node: Annotated[int | None, typer.Option(help='Ranks for --device "cpu".')] = None,
    host: Annotated[str | None, typer.Option(help="Only on the host of this name.")] = None,
    nodes: Annotated[int | None, typer.Option(help="Hosts that train together, each with --device.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Passes over the training set.")] = None,
    batch: Annotated[int | None, typer.Option(help="Global batch in samples.")] = None,
    lr: Annotated[float | None, typer.Option(help="Learning rate at the start.")] = None,
    recipe: Annotated[str | None, typer.Option(help="How to build model, data, loss and metrics.")] = None,
    settings: Settings = None,
    name: Annotated[str | None, typer.Option(help="A name for people.")] = None,
    label: Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="A label; repeat it.")] = None,
    user: Annotated[str | None, typer.Option(help="Whom it is for; else who is logged in.")] = None,
    priority: Annotated[int | None, typer.Option(help="0 to 100; higher starts first.")] = None,
    preemptible: Annotated[
        bool | None,
        typer.Option("--preemptible/--not-preemptible", help="Whether it may be stopped for one of higher priority."),
    ] = None,
    max_retries: Annotated[int | None, typer.Option(help="How often a lost run is tried again.")] = None,
    time_limit: Annotated[
        str | None, typer.Option(metavar="TIME", help="How long it may train in all, such as 90s, 30m, 1.5h, 2d.")
    ] = None,
    hang_limit: Annotated[
        str | None, typer.Option(metavar="TIME", help="How long a rank may be without progress.")
    ] = None,
    start_from: StartFrom = None,
    start_mode: StartMode = None,
    *,
    detach: Detach = False,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """Submit a job and follow it to its end; the exit code is the job's result.

    Flags come on top of the file. Ctrl-C stops following, not the job.
    """
    spec = merged(
        _for_somebody(read_spec(file)),
        job={
            "device": device,
            "nproc_per_node": nproc_per_node,
            "host": host,
            "nodes": nodes,
            "name": name,
            "labels": parse_labels(label or []),
            "user": user,
            "priority": priority,
            "preemptible": preemptible,
            "max_retries": max_retries,
            "time_limit_s": parse_duration(time_limit),
            "hang_limit_s": parse_duration(hang_limit),
            "start_from": parse_start(start_from, start_mode),
        },
        train={"model": model, "data": here(data), "epochs": epochs, "batch": batch, "lr": lr, "recipe": recipe},
        settings=parse_settings(settings or []),
    )
    with Client(url) as client:
        _follow_submitted(client, client.submit(spec), detach=detach, as_json=as_json)


def clone(  # noqa: PLR0917  # as for submit
    job_id: JobId,
    file: Annotated[
        Path | None, typer.Argument(help="Changes as YAML or JSON, like a spec with only what differs; `-` reads them.")
    ] = None,
    device: Annotated[str | None, typer.Option(help="Other devices.")] = None,
    settings: Settings = None,
    name: Annotated[str | None, typer.Option(help="Another name.")] = None,
    priority: Annotated[int | None, typer.Option(help="Another priority.")] = None,
    start_from: StartFrom = None,
    start_mode: StartMode = None,
    *,
    detach: Detach = False,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """Submit a job like another one, with changes, and follow it as `submit` does.

    A field that is set to null has its default again. With --start-mode alone it starts from a checkpoint of that job.
    """
    changes = merged(
        read_spec(file),
        job={"device": device, "name": name, "priority": priority},
        train={},
        settings=parse_settings(settings or []),
    )
    start = parse_start(start_from or str(job_id), start_mode) if start_from or start_mode else None
    with Client(url) as client:
        job = client.clone(job_id, changes, start_from=start)
        _follow_submitted(client, job, detach=detach, as_json=as_json)


def plan(
    file: Annotated[Path, typer.Argument(help="Job spec as YAML or JSON; `-` reads standard input.")],
    device: Annotated[str | None, typer.Option(help="Other devices than in the file.")] = None,
    *,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """Say where a job would start now, or what it would wait for, with nothing submitted."""
    spec = merged(_for_somebody(read_spec(file)), job={"device": device}, train={})
    with Client(url) as client:
        found = client.plan(spec)
    if as_json:
        print_json(found)
    else:
        print_plan(Console(), found)


def _for_somebody(spec: dict[str, Any]) -> dict[str, Any]:
    """A spec, for who is logged in where it names nobody: quotas and fair share go by the user."""
    name = login_name()
    return spec if name is None else {"user": name} | spec


def _follow_submitted(client: Client, job: Job, *, detach: bool, as_json: bool) -> None:
    # With --json, what is for people goes to standard error.
    console = Console(stderr=as_json)
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


def _followed(client: Client, job: Job, console: Console) -> Job:
    try:
        return follow(client.follow(job.id), console)
    except KeyboardInterrupt:
        way_back = f"job {job.id} goes on; see it: rankzero show {job.id}; end it: rankzero cancel {job.id}"
        console.print(way_back, highlight=False)
        raise typer.Exit(exits.INTERRUPTED) from None
