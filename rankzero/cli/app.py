"""The command's entry: its parts put together, and every error as one line and an exit code."""

import errno
import io
import os
import sys
from pathlib import Path

import typer

from rankzero.cli import exits
from rankzero.cli.access import add_access_commands
from rankzero.cli.audit import add_audit_command
from rankzero.cli.catalog import add_catalog_commands
from rankzero.cli.checkpoints import add_checkpoint_commands
from rankzero.cli.console import plain
from rankzero.cli.doctor import add_doctor_command
from rankzero.cli.fleet import add_fleet_commands
from rankzero.cli.jobs import add_job_commands
from rankzero.cli.login import add_login_commands
from rankzero.cli.logs import add_log_commands
from rankzero.cli.metrics import add_metric_commands
from rankzero.cli.quotas import add_quota_commands
from rankzero.cli.service import add_service_commands
from rankzero.cli.submitting import add_submitting_commands
from rankzero.cli.verbs import add_verb_commands
from rankzero.cli.webhooks import add_webhook_commands
from rankzero.cli.why import add_why_command
from rankzero.errors import RankzeroError, RefusedError

app = typer.Typer(
    name="rankzero",
    help="Train PyTorch models as jobs: start a service, submit, follow, pause, cancel.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
add_submitting_commands(app)
add_job_commands(app)
add_why_command(app)
add_log_commands(app)
add_metric_commands(app)
add_checkpoint_commands(app)
add_verb_commands(app)
add_fleet_commands(app)
add_catalog_commands(app)
add_quota_commands(app)
add_login_commands(app)
add_access_commands(app)
add_audit_command(app)
add_webhook_commands(app)
add_service_commands(app)
add_doctor_command(app)

FORBIDDEN = 403
_UNWRITABLE = frozenset({errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EIO})
"""What writing to standard output fails with: its reader has seen enough, its disk is full, its terminal is gone."""


def main() -> None:
    """Run the command and exit with one of `rankzero.cli.exits`."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by who started it
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115  # open to the end
        elif isinstance(stream, io.TextIOWrapper):  # a name or a log may have letters that this terminal lacks
            stream.reconfigure(errors="backslashreplace")
    try:
        try:
            app()
        finally:
            sys.stdout.flush()  # here: what fails at the interpreter's own end is told as a traceback
    except RankzeroError as error:
        print(f"rankzero: {plain(_in_a_line(error))}", file=sys.stderr)
        sys.exit(exits.of_error(error))
    except OSError as error:
        if error.errno not in _UNWRITABLE:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left is written to nowhere
        if error.errno != errno.EPIPE:
            print(f"rankzero: standard output cannot be written: {error.strerror}", file=sys.stderr)
        sys.exit(exits.FAILED)


def _in_a_line(error: RankzeroError) -> str:
    # What role it takes, the service says; which one has, nobody need know by heart.
    is_of_role = isinstance(error, RefusedError) and error.status == FORBIDDEN
    return f"{error}; rankzero whoami says who you are there" if is_of_role else str(error)
