"""The API as one process: `python -m api [--host H] [--port P | --fd N]`."""

import argparse
import socket
import sys

import uvicorn

from jobs.errors import InvalidSettingsError
from jobs.logs import configure_logs


def main() -> None:
    """Serve until SIGINT or SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m api", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, default=8000, help="port to listen on; 0 takes a free one")
    parser.add_argument("--fd", type=int, help="a bound socket that the starter hands over, in place of host and port")
    options = parser.parse_args()
    try:
        configure_logs()
    except InvalidSettingsError as error:
        sys.exit(f"rankzero api: {error}")
    config = uvicorn.Config(
        "api.app:create_app",
        factory=True,
        host=options.host,
        port=options.port,
        log_config=None,  # it logs as the service does (jobs.logs)
        access_log=False,
        timeout_graceful_shutdown=5,
    )
    # Not uvicorn's own `fd`: it takes the socket for a Unix one, and asyncio leaves Nagle's delay on for those.
    sockets = None if options.fd is None else [socket.socket(fileno=options.fd)]
    uvicorn.Server(config).run(sockets=sockets)


if __name__ == "__main__":
    main()
