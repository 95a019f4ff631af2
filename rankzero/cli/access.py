"""The commands about who may use the service and what its jobs may be given: token, users, secrets."""

import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from rankzero.cli.console import Console
from rankzero.cli.options import Json, Url, connect, leads_on, parse_duration, read_secret
from rankzero.cli.output import print_answer, print_found
from rankzero.cli.tables import minute, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rankzero.access import Secret, Token, User

Role = Annotated[str | None, typer.Option(metavar="viewer|submitter|admin", help="The most that it allows.")]
UserName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the user.")]
SecretName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the secret, by which jobs call for it.")]

token = typer.Typer(help="Show tokens, make one, revoke one.")
users = typer.Typer(help="Show users; add one, change their role, disable them. Takes the role admin.")
secrets = typer.Typer(help="Show which secrets jobs may call for; store and remove them. Storing takes the role admin.")


def add_access_commands(app: typer.Typer) -> None:
    """Add these commands to the application."""
    for name, group in (("token", token), ("users", users), ("secrets", secrets)):
        app.add_typer(group, name=name)


@token.callback(invoke_without_command=True)
def list_tokens(
    context: typer.Context,
    user: Annotated[str | None, typer.Option(help="Only those of this user (with the role admin).")] = None,
    *,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """Show one's own tokens, or with the role admin all, or with a command make or revoke one."""
    if leads_on(context):
        return
    with connect(url) as client:
        print_found(list(client.tokens(user=user)), _print_tokens, as_json=as_json)


@token.command("create")
def create_token(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it is for: the machine, or the pipeline.")],
    user: Annotated[str | None, typer.Option(help="Whose it is (with the role admin); else one's own.")] = None,
    role: Role = None,
    expires_in: Annotated[
        str | None, typer.Option("--expires-in", metavar="TIME", help="For how long it counts, such as 12h or 90d.")
    ] = None,
    *,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """Make a token and print it: it is shown this once."""
    lasts_s = parse_duration(expires_in)
    expires_at = None if lasts_s is None else datetime.now(UTC) + timedelta(seconds=lasts_s)
    with connect(url) as client:
        made = client.create_token(name, user=user, role=role, expires_at=expires_at)
    # The text alone on standard output: TOKEN=$(rankzero token create …).
    print_answer(made, made.token, as_json=as_json)
    print(f"token {made.id} of {made.user} ({made.role}); it is shown this once", file=sys.stderr)


@token.command("revoke")
def revoke_token(
    token_id: Annotated[int, typer.Argument(metavar="TOKEN", help="Id of the token.")],
    *,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """Have a token count no more, from the next request on."""
    with connect(url) as client:
        client.revoke_token(token_id)
    print_answer({"revoked": token_id}, f"token {token_id} counts no more", as_json=as_json)


@users.callback(invoke_without_command=True)
def list_users(context: typer.Context, *, as_json: Json = False, url: Url = None) -> None:
    """Show users, or with a command add or change one."""
    if leads_on(context):
        return
    with connect(url) as client:
        print_found(list(client.users()), _print_users, as_json=as_json)


@users.command("add")
def add_user(
    name: UserName,
    role: Annotated[
        str, typer.Option(metavar="viewer|submitter|admin", help="The most that any of their tokens allows.")
    ] = "submitter",
    *,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """Add a user, who can do nothing before they have a token."""
    with connect(url) as client:
        user = client.create_user(name, role=role)
    way_on = f"rankzero token create NAME --user {name} makes them a token"
    print_answer(user, f"{user.name} is a {user.role}; {way_on}", as_json=as_json)


@users.command("set")
def change_user(
    name: UserName,
    role: Role = None,
    disabled: Annotated[
        bool | None, typer.Option("--disable/--enable", help="Whether none of their tokens counts.")
    ] = None,
    *,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """Change a user's role, or disable them; it counts from their next request on."""
    with connect(url) as client:
        user = client.change_user(name, role=role, disabled=disabled)
    standing = "disabled" if user.disabled_at else "enabled"
    print_answer(user, f"{user.name} is {standing}, with the role {user.role}", as_json=as_json)


@secrets.callback(invoke_without_command=True)
def list_secrets(context: typer.Context, *, as_json: Json = False, url: Url = None) -> None:
    """Show the names of the secrets that jobs may call for, or with a command store or remove one."""
    if leads_on(context):
        return
    with connect(url) as client:
        print_found(list(client.secrets()), _print_secrets, as_json=as_json)


@secrets.command("set")
def put_secret(name: SecretName, *, as_json: Json = False, url: Url = None) -> None:
    """Store a secret in place of the one there was. What it holds is asked for, or read from standard input."""
    value = read_secret(f"value of {name}: ")
    with connect(url) as client:
        stored = client.set_secret(name, value)
    print_answer(stored, f"{name} is stored; runs that start from now on are given it", as_json=as_json)


@secrets.command("delete")
def delete_secret(name: SecretName, *, as_json: Json = False, url: Url = None) -> None:
    """Forget a secret; a job that calls for it fails when it starts."""
    with connect(url) as client:
        client.delete_secret(name)
    print_answer({"removed": name}, f"{name} is forgotten", as_json=as_json)


def _print_tokens(console: Console, found: "Sequence[Token]") -> None:
    listed = table("ID", "USER", "NAME", "ROLE", "MADE (UTC)", "LAST USED", "STANDING")
    now = datetime.now(UTC)
    for each in found:
        standing = "counts" if each.expires_at is None else f"until {minute(each.expires_at)}"
        if each.revoked_at is not None:
            standing = "revoked"
        elif each.expires_at is not None and each.expires_at <= now:
            standing = "expired"
        times = (minute(each.created_at), minute(each.last_used_at))
        listed.add_row(str(each.id), escape(each.user), escape(each.name), each.role, *times, standing)
    console.print(listed if found else "no tokens; rankzero token create NAME makes one", highlight=False)


def _print_users(console: Console, found: "Sequence[User]") -> None:
    listed = table("USER", "ROLE", "ADDED (UTC)", "STANDING")
    for each in found:
        standing = "" if each.disabled_at is None else f"disabled since {minute(each.disabled_at)}"
        listed.add_row(escape(each.name), each.role, minute(each.created_at), standing)
    console.print(listed if found else "no users; rankzero users add NAME adds one", highlight=False)


def _print_secrets(console: Console, found: "Sequence[Secret]") -> None:
    listed = table("SECRET", "STORED (UTC)", "BY")
    for each in found:
        listed.add_row(escape(each.name), minute(each.updated_at), escape(each.updated_by or ""))
    console.print(listed if found else "no secrets; rankzero secrets set NAME stores one", highlight=False)
