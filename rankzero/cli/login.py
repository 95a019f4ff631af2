"""The commands about who one is to the service: login, logout, whoami."""

import os
import sys
from typing import Annotated

import typer

from rankzero import credentials
from rankzero.cli.options import Json, Url, connect, read_secret, service_url
from rankzero.cli.output import print_answer
from rankzero.errors import UsageError


def add_login_commands(app: typer.Typer) -> None:
    """Add these commands to the application."""
    for command in (login, logout, whoami):
        app.command()(command)


def login(
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Send the token unencrypted, in a network that you trust.")
    ] = False,
    *,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """Store a token for a service, which every command and client of this account then sends.

    The token is asked for, or read from standard input. It is tried first: one that does not count is not stored.
    """
    from rankzero.client import Client

    service = service_url(url)
    if service.startswith("http:") and not (insecure or credentials.is_loopback(service)):
        # Said before it is typed.
        way_out = "name the service by https, or, in a network that you trust, add --insecure"
        raise UsageError(f"a token would travel unencrypted to {service}: {way_out}")
    token = read_secret(f"token for {service}: ")
    with Client(service, token=token, insecure=insecure or None) as client:
        me = client.me()
    if me.access == "loopback":
        print_answer(me, f"{service} asks for no token, and none is stored", as_json=as_json)
        return
    file = credentials.store(service, token, insecure=insecure)
    print_answer(me, f"logged in to {service} as {me.user} ({me.role}); the token is in {file}", as_json=as_json)
    if os.environ.get(credentials.TOKEN_VARIABLE):
        print(f"{credentials.TOKEN_VARIABLE} is set here, and comes before it", file=sys.stderr)


def logout(*, as_json: Json = False, url: Url = None) -> None:
    """Forget the token that is stored for a service; it counts on until it is revoked (`rankzero token revoke`)."""
    service = service_url(url)
    forgotten = credentials.forget(service)
    line = f"logged out of {service}" if forgotten else f"no token is stored for {service}"
    print_answer({"url": service, "forgotten": forgotten}, line, as_json=as_json)


def whoami(*, as_json: Json = False, url: Url = None) -> None:
    """Say who one is to the service, with which role, and where the token comes from."""
    with connect(url) as client:
        me = client.me()
        service = client.url
    if me.access == "loopback":
        line = f"{service} asks for no token: whoever is at its machine is {me.role}"
    else:
        variable = credentials.TOKEN_VARIABLE
        source = variable if os.environ.get(variable) else str(credentials.path())
        line = f"{me.user}, {me.role}, at {service}: token {me.token_id} of {source}"
    print_answer(me, line, as_json=as_json)
