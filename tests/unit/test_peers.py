"""The hosts of one run: the network that they share, and what keeps them from meeting."""

import errno
import socket

import psutil
import pytest

from jobs.settings import Settings
from jobs.store.nodes import MeetingPoint
from jobs.tables import Placement
from tests.ports import PortClaim
from worker import peers

ELSEWHERE = MeetingPoint(2, "198.18.0.1", 29400)
HERE = MeetingPoint(2, "127.0.0.1", 29400)


@pytest.fixture(autouse=True)
def no_variables_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
        monkeypatch.delenv(name, raising=False)


def own_address() -> tuple[str, str]:
    """The name and an address of some interface of this machine."""
    for name, addresses in psutil.net_if_addrs().items():
        for each in addresses:
            if each.family == socket.AF_INET:
                return name, each.address
    raise AssertionError("this machine has no IPv4 address, not even its loopback")


def test_ranks_of_several_hosts_talk_by_the_interface_that_has_their_hosts_address() -> None:
    name, address = own_address()

    variables = peers.environment(ELSEWHERE, Settings(address=address))

    assert variables == {"GLOO_SOCKET_IFNAME": name, "NCCL_SOCKET_IFNAME": f"={name}"}


def test_what_the_operator_has_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    name, address = own_address()
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "ib0")

    assert peers.environment(ELSEWHERE, Settings(address=address)) == {"GLOO_SOCKET_IFNAME": name}


@pytest.mark.parametrize("point", [MeetingPoint(), HERE], ids=["one host", "two on one machine"])
def test_ranks_that_are_on_one_machine_are_told_no_interface(point: MeetingPoint) -> None:
    assert peers.environment(point, Settings(address=own_address()[1])) == {}


def test_an_address_that_no_interface_has_names_none() -> None:
    assert peers.environment(ELSEWHERE, Settings(address="198.18.0.77")) == {}


def test_a_rendezvous_port_that_another_program_has_is_refused_before_the_trainer_starts() -> None:
    claim = PortClaim()
    try:
        with socket.create_server(("127.0.0.1", claim.port)), pytest.raises(OSError, match="another program has port"):
            peers.refuse_taken_port(MeetingPoint(2, "127.0.0.1", claim.port))
        peers.refuse_taken_port(MeetingPoint(2, "127.0.0.1", claim.port))
    finally:
        claim.release()


@pytest.mark.parametrize(
    ("node_rank", "point", "address", "is_refused"),
    [
        (1, HERE, "198.18.0.2", True),
        (0, HERE, "198.18.0.2", False),
        (1, HERE, "127.0.0.2", False),
        (1, ELSEWHERE, "198.18.0.2", False),
    ],
)
def test_an_address_of_node_0_that_is_only_its_own_loopback_is_refused_on_another_host(
    node_rank: int, point: MeetingPoint, address: str, is_refused: bool
) -> None:
    def check() -> None:
        peers.refuse_unreachable(point, Placement(node_rank=node_rank), Settings(address=address))

    if not is_refused:
        check()
        return
    with pytest.raises(OSError, match="set RANKZERO_ADDRESS there") as refused:
        check()
    assert refused.value.errno == errno.EADDRNOTAVAIL
