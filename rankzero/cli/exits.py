"""The exit codes of the command. docs/cli.md lists them for users."""

from typing import TYPE_CHECKING

from rankzero.errors import RankzeroError, RefusedError, UnreachableError, UsageError

if TYPE_CHECKING:
    from rankzero.models import Job

OK = 0
"""Done; for a followed job: it succeeded."""
FAILED = 1
"""The job failed, the service broke, or the doctor found something bad."""
USAGE = 2
"""The command line or the spec is wrong, or the service refused it."""
CANCELLED = 3
"""The followed job was cancelled."""
UNREACHABLE = 4
"""No service answers."""
INTERRUPTED = 130
"""Ctrl-C; a followed job goes on, unless you chose to cancel it."""


def of_job(job: "Job") -> int:
    """Return the exit code that a job's final state stands for."""
    return {"succeeded": OK, "cancelled": CANCELLED}.get(job.state, FAILED)


def of_error(error: RankzeroError) -> int:
    """Return the exit code for an error."""
    if isinstance(error, UnreachableError):
        return UNREACHABLE
    return USAGE if isinstance(error, (UsageError, RefusedError)) else FAILED
