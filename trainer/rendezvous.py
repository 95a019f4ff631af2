"""The rendezvous: the listening socket on node 0 at which all ranks of a run meet. Never imports torch."""

import errno
import ipaddress
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from trainer.errors import ConfigError
from trainer.run_dir import RunConfig

_LOOPBACK = "127.0.0.1"
_BACKLOG = 1024


@dataclass(frozen=True)
class Rendezvous:
    """Where the ranks of this node go to meet the others."""

    address: str
    port: int
    listener: int | None
    """File descriptor of the listening socket that rank 0 is to serve; None on the other nodes."""


@contextmanager
def open_rendezvous(config: RunConfig) -> Iterator[Rendezvous]:
    """Bind the socket on node 0; elsewhere, say where it is.

    It is bound here and handed over, so that nobody else can take the port in between. Raises ConfigError where
    `master_port` is taken.
    """
    if config.node_rank > 0:
        yield Rendezvous(config.master_addr, config.master_port, None)
        return
    with _listen(config) as listener:
        # Node 0's own ranks are on its loopback in any case: its public name may not even lead back to it.
        address = config.master_addr if is_on_loopback(config) and config.nnodes > 1 else _LOOPBACK
        yield Rendezvous(address, listener.getsockname()[1], listener.fileno())


def is_on_loopback(config: RunConfig) -> bool:
    """Whether all ranks of the run are on this host, and talk over its loopback interface."""
    return config.nnodes == 1 or is_loopback(config.master_addr)


def is_loopback(address: str) -> bool:
    """Whether an address, or the name `localhost`, is this host to itself."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address.lower() == "localhost"


def _listen(config: RunConfig) -> socket.socket:
    port = config.master_port
    try:
        if config.nnodes == 1:
            return _server(_LOOPBACK, port)
        if is_loopback(config.master_addr):
            return _server(config.master_addr, port)
        return _server_for_all(port)
    except OSError as error:
        raise ConfigError(
            f"master_port: port {port} of this host cannot be bound ({error.strerror}); another program, perhaps "
            "another run, has it: name a free one, the same on every node"
        ) from error


def _server(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return socket.create_server((address, port), family=family, backlog=_BACKLOG)


def _server_for_all(port: int) -> socket.socket:
    """On every address of this host: which of them the other nodes reach it by is theirs to know."""
    if socket.has_dualstack_ipv6():
        try:
            return socket.create_server(("", port), family=socket.AF_INET6, backlog=_BACKLOG, dualstack_ipv6=True)
        except OSError as error:
            if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):  # IPv6 is there, but switched off
                raise
    return socket.create_server(("", port), backlog=_BACKLOG)
