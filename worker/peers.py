"""The other hosts of a run: how its ranks reach them, and what node 0 decides for all."""

import errno
import ipaddress
import os
import socket
import time
from collections.abc import Callable

import psutil
import structlog
from sqlalchemy.exc import SQLAlchemyError

from jobs.database import Database
from jobs.settings import Settings
from jobs.store import nodes
from jobs.store.nodes import Decision, MeetingPoint
from jobs.tables import Placement
from worker import host
from worker.link import POLL_S

log = structlog.get_logger()


def environment(point: MeetingPoint, settings: Settings) -> dict[str, str]:
    """Return the variables by which the ranks of a run on several hosts find the network that these share.

    Gloo and NCCL otherwise go by the host's own name, or by the order of its interfaces. What is set already stays.
    """
    if point.nnodes == 1 or _is_loopback(point.master_addr):
        return {}
    interface = _interface(host.find_address(settings))
    wanted = {} if interface is None else {"GLOO_SOCKET_IFNAME": interface, "NCCL_SOCKET_IFNAME": f"={interface}"}
    return {name: value for name, value in wanted.items() if name not in os.environ}


def refuse_unreachable(point: MeetingPoint, placement: Placement, settings: Settings) -> None:
    """Raise OSError, on another node than node 0, where that one's address would lead back to this host.

    Such as that of a host with the database on it, which finds that it reaches the database by its own loopback.
    """
    if placement.node_rank == 0 or not _is_loopback(point.master_addr) or _is_loopback(host.find_address(settings)):
        return
    message = f"node 0's host gives {point.master_addr} as its address, which is this host; set RANKZERO_ADDRESS there"
    raise OSError(errno.EADDRNOTAVAIL, message)


def refuse_taken_port(point: MeetingPoint) -> None:
    """Raise OSError, on node 0, where another program has the port: the job's next attempt gets another one.

    The trainer would refuse it as a mistake in its configuration, which no retry mends.
    """
    if point.nnodes == 1:
        return
    address = point.master_addr if _is_loopback(point.master_addr) else ""
    try:
        socket.create_server((address, point.master_port)).close()
    except OSError as error:
        message = f"another program has port {point.master_port} of this host, one of RANKZERO_RENDEZVOUS_PORTS"
        raise OSError(error.errno, message) from error


def wait_for_decision(database: Database, placement: Placement, *, is_stopped: Callable[[], bool]) -> Decision | None:
    """Return what node 0 continues from, or None once `is_stopped`, which it is too when the database is away too long.

    It may take node 0 long to read large files; should it end instead, this placement is told to stop.
    """
    while not is_stopped():
        try:
            with database.session_scope(read_only=True) as session:
                decision = nodes.resume_decision(session, placement)
        except SQLAlchemyError as error:
            log.warning("database_away", error=str(error).splitlines()[0])
            decision = None
        if decision is not None:
            return decision
        time.sleep(POLL_S)
    return None


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address.lower() == "localhost"


def _interface(address: str) -> str | None:
    """The interface that has an address, given as such or by name; None where none of this host's has it."""
    try:
        wanted = {str(each[4][0]) for each in socket.getaddrinfo(address, None)}
    except OSError:
        return None
    for name, addresses in psutil.net_if_addrs().items():
        if any(each.address.partition("%")[0] in wanted for each in addresses):
            return name
    return None
