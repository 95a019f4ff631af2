"""The API as one process: `python -m api [--host H] [--port P | --fd N] [--forwarded-allow-ips A,B]`."""

import argparse
import socket
import sys
from ipaddress import ip_network

import structlog

from api.app import create_app
from api.loopback import is_loopback
from api.server import Server
from jobs.access import Access
from jobs.database import AWAY, get_database
from jobs.errors import InvalidSettingsError, SchemaMissingError
from jobs.logs import configure_logs
from jobs.settings import get_settings
from jobs.store import schema, tokens

log = structlog.get_logger()


def main() -> None:
    """Serve until SIGINT or SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m api", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, default=8000, help="port to listen on; 0 takes a free one")
    parser.add_argument("--fd", type=int, help="a bound socket that the starter hands over, in place of host and port")
    parser.add_argument(
        "--forwarded-allow-ips",
        type=_proxies,
        metavar="ADDRESSES",
        help="addresses or networks of the proxies, with commas between, whose X-Forwarded-For is believed",
    )
    options = parser.parse_args()
    # Not uvicorn's own `fd`: it takes the socket for a Unix one, and asyncio leaves Nagle's delay on for those.
    sockets = None if options.fd is None else [socket.socket(fileno=options.fd)]
    try:
        configure_logs()
        address = options.host if sockets is None else _address(sockets[0])
        access = get_settings().access or _access_at(address, is_behind_proxy=options.forwarded_allow_ips is not None)
    except InvalidSettingsError as error:
        sys.exit(f"rankzero api: {error}")
    if access is Access.TOKENS and (reason := _why_unusable()):
        sys.exit(f"rankzero api: {reason}")
    server = Server(
        create_app(access),
        host=options.host,
        port=options.port,
        log_config=None,  # it logs as the service does (jobs.logs)
        access_log=False,
        # A client can claim any address in X-Forwarded-For: it counts from a proxy that the operator names.
        proxy_headers=options.forwarded_allow_ips is not None,
        forwarded_allow_ips=options.forwarded_allow_ips,
        timeout_graceful_shutdown=5,
    )
    server.run(sockets=sockets)


def _proxies(text: str) -> list[str]:
    """Return the addresses and networks in a list of them, as networks; anybody at all (`*`) is none."""
    try:
        return [str(ip_network(each.strip())) for each in text.split(",")]
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _access_at(address: str, *, is_behind_proxy: bool) -> Access:
    """Return how principals are known where the settings do not say, by the address that is listened on.

    What a proxy on this machine passes on comes from it, whoever sent it.
    """
    is_here_alone = address == "localhost" or is_loopback(address)
    return Access.LOOPBACK if is_here_alone and not is_behind_proxy else Access.TOKENS


def _address(listener: socket.socket) -> str:
    name = listener.getsockname()
    return str(name[0]) if isinstance(name, tuple) else ""


def _why_unusable() -> str | None:
    """Why nobody could use a service that asks for tokens, and what to do; None where somebody can.

    A database that does not answer is no reason: until it does, nobody is let in.
    """
    try:
        with get_database().session_scope(read_only=True) as session:
            schema.require_current(session)
            if tokens.has_admin(session):
                return None
    except SchemaMissingError as error:
        return str(error)
    except AWAY as error:
        log.warning("database_silent", error=str(error).splitlines()[0])
        return None
    return (
        "beyond this machine it asks for tokens, and there is none of an admin; make one: "
        "python -m jobs.tokens create --user NAME --role admin"
    )


if __name__ == "__main__":
    main()
