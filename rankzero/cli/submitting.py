"""The commands that describe a job: submit, clone, plan."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankzero import credentials
from rankzero.cli import exits
from rankzero.cli.console import Console
from rankzero.cli.following import follow
from rankzero.cli.options import (
    DEVICE_FORMS,
    FOLLOWING_S,
    Detach,
    JobId,
    Json,
    Settings,
    StartFrom,
    StartMode,
    Url,
    connect,
    login_name,
    parse_start,
)
from rankzero.cli.output import print_found, print_job, print_json, print_plan
from rankzero.cli.spec_file import merged, parse_device, parse_settings, read_spec
from rankzero.cli.spec_flags import takes_a_spec

if TYPE_CHECKING:
    from rankzero.client import Client
    from rankzero.models import Job

DETACH, CANCEL = "d", "c"


def add_submitting_commands(app: typer.Typer) -> None:
    """Add these commands to the application."""
    for command in (submit, clone, plan):
        app.command()(command)


@takes_a_spec
def submit(spec: dict[str, Any], *, detach: Detach = False, as_json: Json = False, url: Url = None) -> None:
    """Submit a job and follow it to its end; the exit code is the job's result.

    Flags come on top of the file. Ctrl-C asks whether to detach, so that the job goes on, or to cancel it; a second
    Ctrl-C detaches.
    """
    with connect(url, patience_s=FOLLOWING_S) as client:
        _follow_submitted(client, client.submit(_for_somebody(spec, client)), detach=detach, as_json=as_json)


def clone(  # noqa: PLR0917  # as for submit
    job_id: JobId,
    file: Annotated[
        Path | None, typer.Argument(help="Changes as YAML or JSON, like a spec with only what differs; `-` reads them.")
    ] = None,
    device: Annotated[str | None, typer.Option(help=f"Other devices: {DEVICE_FORMS}.")] = None,
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
        job={"device": parse_device(device), "name": name, "priority": priority},
        train={},
        settings=parse_settings(settings or []),
    )
    start = parse_start(start_from or str(job_id), start_mode) if start_from or start_mode else None
    with connect(url, patience_s=FOLLOWING_S) as client:
        job = client.clone(job_id, changes, start_from=start)
        _follow_submitted(client, job, detach=detach, as_json=as_json)


@takes_a_spec
def plan(spec: dict[str, Any], *, as_json: Json = False, url: Url = None) -> None:
    """Say where a job would start now, or what it would wait for, with nothing submitted."""
    with connect(url) as client:
        print_found(client.plan(_for_somebody(spec, client)), print_plan, as_json=as_json)


def _for_somebody(spec: dict[str, Any], client: "Client") -> dict[str, Any]:
    """A spec, for who is logged in here where it names nobody: quotas and fair share go by the user.

    A service that is sent a token knows by that who it is, and lets nobody but an admin name another.
    """
    name = None if credentials.find(client.url) else login_name()
    return spec if name is None else {"user": name} | spec


def _follow_submitted(client: "Client", job: "Job", *, detach: bool, as_json: bool) -> None:
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


def _followed(client: "Client", job: "Job", console: Console) -> "Job":
    try:
        return follow(client.watch(job.id), console)
    except KeyboardInterrupt:
        if _choice(job, console) == DETACH:
            raise _detached(job, console) from None
    try:
        client.cancel(job.id)
        return follow(client.watch(job.id), console)
    except KeyboardInterrupt:
        raise _detached(job, console) from None


def _choice(job: "Job", console: Console) -> str:
    """What is to become of a job whose follower was interrupted: where nobody can be asked, it goes on."""
    if not (console.is_terminal and sys.stdin.isatty()):
        return DETACH
    answer: str | None = None
    try:
        while answer not in ("", DETACH, CANCEL):
            question = f"job {job.id} goes on: [{DETACH}] detach, or [{CANCEL}] cancel it? ({DETACH}) "
            answer = console.input(question, markup=False).strip().lower()[:1]
    except (KeyboardInterrupt, EOFError):
        console.print()
        return DETACH
    return answer or DETACH


def _detached(job: "Job", console: Console) -> typer.Exit:
    way_back = f"job {job.id} goes on; see it: rankzero show {job.id}; end it: rankzero cancel {job.id}"
    console.print(way_back, highlight=False)
    return typer.Exit(exits.INTERRUPTED)
