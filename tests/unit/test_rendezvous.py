"""The rendezvous: which socket node 0 binds, and what it says where it cannot."""

import socket
from collections.abc import Iterator

import pytest

from tests.ports import PortClaim
from trainer.config import TrainConfig
from trainer.environment import machine_defaults
from trainer.errors import ConfigError
from trainer.rendezvous import is_on_loopback, open_rendezvous
from trainer.run_dir import RunConfig


@pytest.fixture
def port() -> Iterator[int]:
    claim = PortClaim()
    yield claim.port
    claim.release()


def config(*, nnodes: int = 2, node_rank: int = 0, master_addr: str = "alpha", master_port: int = 0) -> RunConfig:
    return RunConfig(
        train=TrainConfig(model="resnet18", data="digits"),
        devices=("cpu",),
        nnodes=nnodes,
        node_rank=node_rank,
        master_addr=master_addr,
        master_port=master_port,
    )


def address_of(listener: int) -> str:
    with socket.socket(fileno=socket.dup(listener)) as bound:
        return str(bound.getsockname()[0])


def test_the_ranks_of_one_node_meet_on_a_free_port_that_no_other_host_reaches() -> None:
    with open_rendezvous(config(nnodes=1)) as first, open_rendezvous(config(nnodes=1)) as second:
        assert first.listener is not None
        assert address_of(first.listener) == first.address == "127.0.0.1"
        assert first.port != second.port


@pytest.mark.parametrize("address", ["127.0.0.1", "localhost"])
def test_nodes_on_one_host_meet_where_no_other_host_reaches_them(address: str, port: int) -> None:
    with open_rendezvous(config(master_addr=address, master_port=port)) as rendezvous:
        assert rendezvous.listener is not None
        assert (rendezvous.address, rendezvous.port) == (address, port)
        assert address_of(rendezvous.listener) == "127.0.0.1"


def test_nodes_on_several_hosts_reach_node_0_by_any_of_its_addresses(port: int) -> None:
    with open_rendezvous(config(master_port=port)) as rendezvous:
        assert rendezvous.listener is not None
        assert address_of(rendezvous.listener) in ("::", "0.0.0.0")
        for address in {"127.0.0.1", rendezvous.address}:
            socket.create_connection((address, port)).close()


def test_another_node_binds_nothing_and_looks_for_node_0(port: int) -> None:
    with open_rendezvous(config(node_rank=1, master_port=port)) as rendezvous:
        assert (rendezvous.address, rendezvous.port, rendezvous.listener) == ("alpha", port, None)


@pytest.mark.parametrize(("nnodes", "address"), [(1, "127.0.0.1"), (2, "127.0.0.1"), (2, "alpha")])
def test_a_port_that_another_program_has_is_an_error_that_names_it(nnodes: int, address: str, port: int) -> None:
    run = config(nnodes=nnodes, master_addr=address, master_port=port)
    with (
        socket.create_server(("127.0.0.1", port)),
        pytest.raises(ConfigError, match=f"master_port: port {port} ") as refused,
        open_rendezvous(run),
    ):
        pass
    assert "name a free one" in str(refused.value)


@pytest.mark.parametrize(
    ("run", "on_loopback"),
    [
        (config(nnodes=1, master_addr="alpha"), True),
        (config(master_addr="localhost"), True),
        (config(master_addr="127.0.0.5"), True),
        (config(master_addr="::1"), True),
        (config(master_addr="10.0.0.1"), False),
        (config(master_addr="alpha"), False),
    ],
)
def test_gloo_is_held_to_the_loopback_interface_only_where_all_ranks_are_on_this_host(
    run: RunConfig, on_loopback: bool
) -> None:
    assert is_on_loopback(run) is on_loopback
    defaults = machine_defaults({}, local_world_size=1, on_loopback=is_on_loopback(run))
    assert ("GLOO_SOCKET_IFNAME" in defaults) is on_loopback
