"""A job on two hosts, each with its own worker and, where the machine lets us, its own network."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from rankzero.client import Client
from tests.api_server import ApiServer
from tests.networks import may_make_networks, network
from tests.proxy import Proxy
from tests.service import DIGITS, Service
from trainer.run_dir import RunDir

pytestmark = pytest.mark.timeout(300)


@dataclass(frozen=True)
class Hosts:
    """A service with two hosts: `alpha` with four simulated devices, and `beta` with two."""

    service: Service
    client: Client
    addresses: tuple[str, str]


@pytest.fixture
def hosts(postgresql_url: str, broker_url: str, tmp_path: Path) -> Iterator[Hosts]:
    with ExitStack() as stack:
        service = stack.enter_context(Service(postgresql_url, broker_url, tmp_path))
        api = stack.enter_context(ApiServer(postgresql_url, tmp_path, broker_url=broker_url))
        if may_make_networks():
            net = stack.enter_context(network(2))
            ways = [stack.enter_context(Proxy(url, address=net.own_address)) for url in (postgresql_url, broker_url)]
            servers = {"database_url": ways[0].url, "broker_url": ways[1].url}
            addresses = (net.hosts[0].address, net.hosts[1].address)
            service.start_worker("alpha", inside=net.hosts[0].inside, simulated_devices=4, **servers)
            service.start_worker("beta", inside=net.hosts[1].inside, **servers)
        else:
            addresses = ("127.0.0.1", "127.0.0.2")
            service.start_worker("alpha", address=addresses[0], simulated_devices=4)
            service.start_worker("beta", address=addresses[1])
        with api.client() as client:
            yield Hosts(service, client, addresses)


def test_four_ranks_on_two_hosts_train_what_four_ranks_on_one_host_do(hosts: Hosts) -> None:
    client, short = hosts.client, DIGITS | {"epochs": 1}
    alone, together = client.submit(device="0,1,2,3", train=short), client.submit(device="0,1", nodes=2, train=short)

    over = [client.wait(job.id, timeout_s=200) for job in (alone, together)]

    assert [job.state for job in over] == ["succeeded", "succeeded"], hosts.service.story(together.id)
    (attempt,) = client.attempts(together.id)
    assert [placement.host for placement in attempt.placements] == ["alpha", "beta"]
    assert attempt.world_size == 4
    configs = [RunDir(Path(placement.run_dir)).read_config() for placement in attempt.placements]
    assert [(config.nnodes, config.node_rank) for config in configs] == [(2, 0), (2, 1)]
    assert {config.master_addr for config in configs} == {hosts.addresses[0]}
    assert len({config.master_port for config in configs}) == 1
    hosts.service.assert_same_series(together.id, alone.id)
    hosts.service.assert_laws_held(together.id, alone.id)
