"""What the shell completes by asking the service: ids of jobs, names of hosts. Where it does not answer, nothing."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rankzero.client import Client

TIMEOUT_S = 2
"""Somebody has pressed a key and waits."""
MOST_JOBS = 50
"""The newest."""


def complete_job(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Return the ids that begin so, each with what tells jobs apart."""
    return _beginning(
        context,
        incomplete,
        lambda client: ((str(job.id), f"{job.state} {job.name}") for job in client.list(limit=MOST_JOBS)),
    )


def complete_host(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Return the names of hosts that begin so, each with whether it takes jobs."""
    return _beginning(
        context,
        incomplete,
        lambda client: ((host.name, host.closed or "takes jobs") for host in client.hosts()),
    )


def _beginning(
    context: typer.Context, incomplete: str, ask: "Callable[[Client], Iterable[tuple[str, str]]]"
) -> list[tuple[str, str]]:
    from rankzero.client import Client
    from rankzero.errors import RankzeroError

    try:
        with Client(context.params.get("url"), timeout_s=TIMEOUT_S, patience_s=0) as client:
            return [each for each in ask(client) if each[0].startswith(incomplete)]
    except RankzeroError:
        return []  # an error has no place on a line that is being typed
