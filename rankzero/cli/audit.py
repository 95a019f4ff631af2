"""The command about the audit: who did what, and what a role did not allow."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from rankzero.cli.console import Console
from rankzero.cli.options import Json, Url, connect, parse_moment
from rankzero.cli.output import print_found
from rankzero.cli.tables import table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rankzero.access import AuditEvent


def add_audit_command(app: typer.Typer) -> None:
    """Add it to the application."""
    app.command()(audit)


def audit(  # noqa: PLR0917  # Typer passes by name; each is an option of the command
    actor: Annotated[str | None, typer.Option(metavar="USER", help="Only what this user did.")] = None,
    action: Annotated[str | None, typer.Option(help="Only of this kind, such as submit_job.")] = None,
    subject: Annotated[str | None, typer.Option(help="Only what was done to this, such as jobs/7 or hosts.")] = None,
    begin: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="Only since then: 2h ago, or 2026-11-30T06:00.")
    ] = None,
    end: Annotated[str | None, typer.Option("--to", metavar="TIME", help="Only before.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Most events to show.")] = 50,
    *,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """List what was done and what a role did not allow, the newest first. Takes the role admin."""
    since, until = parse_moment(begin), parse_moment(end)
    with connect(url) as client:
        found = client.audit(actor=actor, action=action, subject=subject, begin=since, end=until, limit=limit)
        print_found(list(found), _print_events, as_json=as_json)


def _print_events(console: Console, found: "Sequence[AuditEvent]") -> None:
    listed = table("WHEN (UTC)", "WHO", "WHAT", "TO", "REFUSED")
    for each in found:
        refused = each.detail.get("refused", "")
        cells = (each.actor or "(nobody)", each.action, each.subject or "", str(refused))
        listed.add_row(f"{each.at:%Y-%m-%d %H:%M:%S}", *map(escape, cells))
    console.print(listed if found else "nothing of that was done", highlight=False)
