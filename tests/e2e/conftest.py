"""The service that jobs are posted to: one for all of this folder, whose jobs want other devices or wait as jobs do."""

from collections.abc import Iterator
from typing import Any

import pytest

from jobs.sealing import make_key
from rankzero.client import Client
from tests.api_server import ApiServer
from tests.conftest import drop
from tests.servers import PostgresServer, ValkeyServer
from tests.service import Service
from tests.waiting import wait_until


@pytest.fixture(scope="package")
def client(
    postgres_session: PostgresServer,
    valkey_session: ValkeyServer,
    migrated_postgres_template: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Client]:
    """A client of an API, with a worker of twelve simulated devices that has published what it can run."""
    folder = tmp_path_factory.mktemp("service")
    valkey_session.start()
    url = postgres_session.create_database(template=migrated_postgres_template)
    make_key(folder / "key")
    hooks: dict[str, Any] = {"key_file": folder / "key", "webhook_allow": "127.0.0.1"}  # receivers on this machine
    with Service(url, valkey_session.url, folder, asks_trainer=True, simulated_devices=12, **hooks) as service:
        service.start_worker(cpu_slots=2)
        wait_until(service.catalog_is_known, timeout_s=60, what="the worker to publish its catalog")
        with ApiServer(url, folder, broker_url=valkey_session.url, **hooks) as api, api.client() as client:
            yield client
    drop(postgres_session, url)
