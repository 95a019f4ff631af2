"""The commands about quotas, and what is used of them."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from rankzero.cli.console import Console
from rankzero.cli.options import Json, Url, connect, leads_on
from rankzero.cli.output import print_answer, print_found
from rankzero.cli.tables import table

if TYPE_CHECKING:
    from rankzero.fleet import Quotas

Kind = Annotated[str, typer.Argument(metavar="user|label", help="Whose quota it is.")]
Subject = Annotated[
    str,
    typer.Argument(
        metavar="SUBJECT", help="The user's name, `*` for each user with no quota of its own, or key=value."
    ),
]

quotas = typer.Typer(help="Show quotas and what is used; set and delete quotas.")


def add_quota_commands(app: typer.Typer) -> None:
    """Add these commands to the application."""
    app.add_typer(quotas, name="quotas")


@quotas.callback(invoke_without_command=True)
def list_quotas(context: typer.Context, *, as_json: Json = False, url: Url = None) -> None:
    """Show quotas and what is used, or with a command change one."""
    if leads_on(context):
        return
    with connect(url) as client:
        print_found(client.quotas(), _print_quotas, as_json=as_json)


@quotas.command("set")
def set_quota(
    kind: Kind,
    subject: Subject,
    max_devices: Annotated[
        int | None, typer.Option(min=0, help="Most devices held at once; without it there is no limit.")
    ] = None,
    share: Annotated[float, typer.Option(help="Weight in the fair share; 1 is everybody's.")] = 1,
    *,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """Set the quota of a user or a label, in place of the one it had."""
    with connect(url) as client:
        quota = client.set_quota(kind, subject, max_devices=max_devices, share=share)
    line = f"{quota.kind} {quota.subject}: {_limit(quota.max_devices)}, share {quota.share:g}"
    print_answer(quota, line, as_json=as_json)


@quotas.command("delete")
def delete_quota(kind: Kind, subject: Subject, *, as_json: Json = False, url: Url = None) -> None:
    """Take the quota of a user or a label away."""
    with connect(url) as client:
        client.delete_quota(kind, subject)
    whose = f"{kind} {subject}"
    print_answer({"removed": whose}, f"{whose} has no quota", as_json=as_json)


def _print_quotas(console: Console, found: "Quotas") -> None:
    listed = table("KIND", "SUBJECT", "LIMIT", "SHARE", "HELD", "USED LATELY")
    for quota in found.items:
        use = ("", "") if quota.use is None else (str(quota.use.held_devices), _hours(quota.use.recent_device_s))
        listed.add_row(quota.kind, escape(quota.subject), _limit(quota.max_devices), f"{quota.share:g}", *use)
    limited = {quota.subject for quota in found.items if quota.kind == "user"}
    for user in found.users:
        if user.user not in limited:
            name = escape(user.user) if user.user is not None else "(nobody)"
            listed.add_row("user", name, "", "", str(user.held_devices), _hours(user.recent_device_s))
    console.print(listed)


def _limit(max_devices: int | None) -> str:
    return "no limit" if max_devices is None else f"{max_devices} device{'' if max_devices == 1 else 's'}"


def _hours(device_s: float) -> str:
    return f"{device_s / 3600:.1f} device-hours"
