"""Options and arguments that several commands share, and how their words are read."""

import getpass
import re
from typing import Annotated, Any

import typer

from rankzero.errors import UsageError

Url = Annotated[str | None, typer.Option("--url", help="The service; else RANKZERO_URL, else this machine's.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
JobId = Annotated[int, typer.Argument(help="Id of the job.")]
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
UNITS_S = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}


def parse_duration(text: str | None) -> float | None:
    """Return `90`, `90s`, `30m`, `1.5h` or `2d` in seconds; None for none. Raises UsageError."""
    if text is None:
        return None
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([smhd]?)", text.strip())
    if match is None:
        raise UsageError(f"{text!r} is no duration; write it as 90s, 30m, 1.5h or 2d")
    return float(match[1]) * UNITS_S[match[2]]


def parse_start(start_from: str | None, mode: str | None) -> dict[str, Any] | None:
    """Return `JOB[:CHECKPOINT]` as `start_from` of a spec; None for none. Raises UsageError."""
    if start_from is None:
        if mode is not None:
            raise UsageError("--start-mode says how to start from a checkpoint; name its job with --start-from")
        return None
    match = re.fullmatch(r"([0-9]+)(?::([0-9]+))?", start_from)
    if match is None:
        raise UsageError(f"--start-from {start_from}: write it as JOB or JOB:CHECKPOINT, by their ids")
    given = {"job": int(match[1]), "checkpoint": match[2] and int(match[2]), "mode": mode}
    return {name: value for name, value in given.items() if value is not None}


def login_name() -> str | None:
    """Return who is logged in; None where that has no name, as in a container that runs under a bare number."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return None
