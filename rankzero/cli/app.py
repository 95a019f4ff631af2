"""The command's entry: its parts put together, and every error as one line and an exit code."""

import sys

import typer

from rankzero.cli import exits
from rankzero.cli.fleet import add_fleet_commands
from rankzero.cli.jobs import add_job_commands
from rankzero.cli.service import add_service_commands
from rankzero.cli.submitting import add_submitting_commands
from rankzero.cli.verbs import add_verb_commands
from rankzero.errors import RankzeroError

app = typer.Typer(
    name="rankzero",
    help="Train PyTorch models as jobs: start a service, submit, follow, pause, cancel.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
add_submitting_commands(app)
add_job_commands(app)
add_verb_commands(app)
add_fleet_commands(app)
add_service_commands(app)


def main() -> None:
    """Run the command and exit with one of `rankzero.cli.exits`."""
    try:
        app()
    except RankzeroError as error:
        print(f"rankzero: {error}", file=sys.stderr)
        sys.exit(exits.of_error(error))
