"""Hosts with addresses of their own on one machine: network namespaces on a bridge, as cables and a switch would be."""

import itertools
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psutil

PREFIX = "rz"
"""How the names of what is made here begin, followed by the process that made it."""


@dataclass(frozen=True)
class NetworkHost:
    """One host of a network."""

    address: str
    inside: tuple[str, ...]
    """Command that starts another command there."""
    cable: str
    """Name of the end of its cable that is in the switch."""

    def pull(self) -> None:
        """Take the cable out of the switch: nothing arrives any more, and nobody is told."""
        _ip(f"link set {self.cable} down")

    def plug_in(self) -> None:
        """Put the cable back."""
        _ip(f"link set {self.cable} up")


@dataclass(frozen=True)
class Network:
    """A network of hosts, and the address at which this process's own servers can be reached from there."""

    own_address: str
    hosts: tuple[NetworkHost, ...]


def may_make_networks() -> bool:
    """Whether this process may make network namespaces, bridges and what connects them."""
    name = f"{PREFIX}{os.getpid()}n"
    try:
        for command in (f"netns add {name}", f"link add {name} type bridge"):
            _ip(command)
    except (OSError, subprocess.CalledProcessError):
        return False
    finally:
        _remove(name)
    return True


@contextmanager
def network(hosts: int) -> Iterator[Network]:
    """Make a network of so many hosts, and leave nothing of it, not even of one whose test process was killed."""
    _remove_abandoned()
    number_here = next(number for number in itertools.count() if number not in _numbers)
    _numbers.add(number_here)
    name = f"{PREFIX}{os.getpid()}n{number_here}"
    # Of the range that is set aside for tests between networks (RFC 2544): two of them in one process, at once.
    subnet = f"198.{18 + number_here}.{os.getpid() % 250}"
    made = []
    try:
        _ip(f"link add {name} type bridge")
        _ip(f"addr add {subnet}.254/24 dev {name}")
        _ip(f"link set {name} up")
        for number in range(1, hosts + 1):
            made.append(_join(f"{name}h{number}", bridge=name, address=f"{subnet}.{number}"))
        yield Network(f"{subnet}.254", tuple(made))
    finally:
        for number in range(1, hosts + 1):
            _remove(f"{name}h{number}")
        _remove(name)
        _numbers.discard(number_here)


_numbers: set[int] = set()
"""Those of this process's networks that there are now."""


def _join(name: str, *, bridge: str, address: str) -> NetworkHost:
    """Make a namespace with one cable to the bridge."""
    _ip(f"netns add {name}")
    _ip(f"link add {name} type veth peer name eth0 netns {name}")
    _ip(f"link set {name} master {bridge}")
    _ip(f"link set {name} up")
    for command in (f"addr add {address}/24 dev eth0", "link set eth0 up", "link set lo up"):
        _ip(f"-n {name} {command}")
    # nsenter and not `ip netns exec`, which would also put another /sys there.
    return NetworkHost(address, ("nsenter", f"--net=/run/netns/{name}"), cable=name)


def _remove(name: str) -> None:
    for command in (f"netns del {name}", f"link del {name}"):
        subprocess.run(["ip", *command.split()], check=False, capture_output=True)


def _remove_abandoned() -> None:
    """Remove what a test process that was killed has left."""
    for listing in ("netns list", "-brief link show type bridge"):
        for line in _ip(listing).splitlines():
            name = line.split()[0]
            owner = name.removeprefix(PREFIX).partition("n")[0]
            if name.startswith(PREFIX) and owner.isdigit() and not psutil.pid_exists(int(owner)):
                _remove(name)


def _ip(command: str) -> str:
    return subprocess.run(["ip", *command.split()], check=True, capture_output=True, text=True).stdout
