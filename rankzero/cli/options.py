"""Options and arguments that several commands share, and how their words are read."""

import getpass
import os
import re
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankzero.cli.completing import complete_host, complete_job
from rankzero.errors import UsageError

if TYPE_CHECKING:
    from rankzero.client import Client

Url = Annotated[str | None, typer.Option("--url", help="The service; else RANKZERO_URL, else this machine's.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
JobId = Annotated[int, typer.Argument(metavar="ID", help="Id of the job.", autocompletion=complete_job)]
HostName = Annotated[str, typer.Argument(metavar="HOST", help="Name of the host.", autocompletion=complete_host)]
Detach = Annotated[bool, typer.Option("--detach", "-d", help="Do not follow the job.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="FIELD=VALUE", help="Any field of `train`, or of its `options` as options.NAME; repeat it."
    ),
]
StartFrom = Annotated[
    str | None,
    typer.Option(
        metavar="JOB[:CHECKPOINT]",
        help="Start from a checkpoint of this job: the one of that id, else its best weights, or its last to resume.",
    ),
]
StartMode = Annotated[
    str | None,
    typer.Option(help="With --start-from: weights begins anew with its weights; resume goes on where it was."),
]

DEVICE_FORMS = '"0,1", "cuda:0", "cpu", "mps", "auto", or a number of them: "{count: 2}"'
PATIENCE_S = 10.0
"""For how long a service that is away is tried: somebody waits."""
FOLLOWING_S = 60.0
"""The same where a job is followed: it is the service's restart that is waited for."""
UNITS_S = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}


def connect(url: str | None, *, patience_s: float = PATIENCE_S) -> "Client":
    """Return a client of the service. Loaded here: `--help`, and completing a word, have to be quick."""
    from rankzero.client import Client

    return Client(url, patience_s=patience_s)


def service_url(url: str | None) -> str:
    """Return where the service is, as a client of it would find it, with no token asked for."""
    from rankzero.connection import DEFAULT_URL, URL_VARIABLE

    return (url or os.environ.get(URL_VARIABLE) or DEFAULT_URL).rstrip("/")


def leads_on(context: typer.Context) -> bool:
    """Return whether a command of the group follows. Raises UsageError for options before it, which would be lost."""
    if context.invoked_subcommand is None:
        return False
    for option in context.command.params:
        if context.params.get(str(option.name)):
            command, name = f"{context.command_path} {context.invoked_subcommand}", option.opts[0]
            raise UsageError(f"{name} belongs behind the command: {command} {name} …")
    return True


def read_secret(prompt: str) -> str:
    """Return what is typed, unseen, or else all of standard input; never from the command line, which others can read.

    Raises UsageError where there is nothing.
    """
    try:
        text = getpass.getpass(prompt) if sys.stdin.isatty() else sys.stdin.read()
    except UnicodeDecodeError as error:
        raise UsageError("standard input is no text: a secret is given to jobs in a variable") from error
    text = text.rstrip("\r\n")
    if not text:
        raise UsageError("nothing was given: type it, or send it to standard input")
    return text


def parse_duration(text: str | None) -> float | None:
    """Return `90`, `90s`, `30m`, `1.5h` or `2d` in seconds; None for none. Raises UsageError."""
    if text is None:
        return None
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([smhd]?)", text.strip())
    if match is None:
        raise UsageError(f"{text!r} is no duration; write it as 90s, 30m, 1.5h or 2d")
    return float(match[1]) * UNITS_S[match[2]]


def parse_moment(text: str | None) -> datetime | None:
    """Return a time as it is written, of this machine's zone unless it has its offset, or as how long ago it was.

    `2026-11-30T06:00`, `2h`; None for none. Raises UsageError.
    """
    if text is None:
        return None
    if re.fullmatch(r"[0-9.]+\s*[smhd]", text.strip()) is None:
        try:
            return datetime.fromisoformat(text).astimezone()
        except (ValueError, OverflowError) as error:
            raise UsageError(
                f"{text!r:.100} is no time; write 2026-11-30, 2026-11-30T06:00, or 2h for two hours ago"
            ) from error
    try:
        return datetime.now(UTC) - timedelta(seconds=parse_duration(text) or 0)
    except OverflowError as error:
        raise UsageError(f"{text:.20} ago: no calendar goes so far") from error


def parse_id(text: str) -> int | None:
    """Return a number of one's own, such as an id; None for what is none, or longer than any there is."""
    return int(text) if re.fullmatch(r"[0-9]{1,19}", text) else None


def parse_start(start_from: str | None, mode: str | None) -> dict[str, Any] | None:
    """Return `JOB[:CHECKPOINT]` as `start_from` of a spec; None for none. Raises UsageError."""
    if start_from is None:
        if mode is not None:
            raise UsageError("--start-mode says how to start from a checkpoint; name its job with --start-from")
        return None
    job, colon, checkpoint = start_from.partition(":")
    if parse_id(job) is None or (colon and parse_id(checkpoint) is None):
        raise UsageError(f"--start-from {start_from:.100}: write it as JOB or JOB:CHECKPOINT, by their ids")
    given = {"job": parse_id(job), "checkpoint": parse_id(checkpoint), "mode": mode}
    return {name: value for name, value in given.items() if value is not None}


def login_name() -> str | None:
    """Return who is logged in; None where that has no name, as in a container that runs under a bare number."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return None
