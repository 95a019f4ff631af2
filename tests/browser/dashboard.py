"""The service whose dashboard is tested: an API that asks for tokens, and the worker of a host that trains."""

from dataclasses import dataclass
from pathlib import Path

from api import bundle
from api.bundle import STATIC
from api.web import inputs
from jobs.sealing import make_key
from rankzero.client import Client
from tests.integration.guarded_api import GuardedApi
from tests.service import Service
from tests.waiting import wait_until

DEVICES = 8
"""Simulated ones of the host `alpha`: more than what any test has running at once."""


@dataclass(frozen=True)
class Dashboard:
    """The running service."""

    api: GuardedApi
    service: Service

    def client(self, user: str) -> Client:
        """A client of the API with the token of a user."""
        return Client(self.api.url, token=self.api.tokens[user])


def start_service(database_url: str, broker_url: str, folder: Path, key: Path) -> Service:
    """Start the worker of the host `alpha`, and return once it has said what it can run."""
    service = Service(
        database_url, broker_url, folder, simulated_devices=DEVICES, key_file=key, webhook_allow="127.0.0.1"
    )
    service.start_worker(cpu_slots=2)
    wait_until(service.catalog_is_known, timeout_s=60, what="the worker to publish its catalog")
    return service


def make_key_file(folder: Path) -> Path:
    """Make the key with which the service seals the keys of webhooks, and secrets."""
    path = folder / "key"
    make_key(path)
    return path


def assert_built(static: Path = STATIC, web: Path = inputs.WEB) -> None:
    """Fail where the dashboard that the API serves was not built from the sources that are here."""
    way_out = "build it by: make dashboard"
    try:
        built = bundle.read(static)
    except bundle.BundleError as error:
        raise AssertionError(f"the dashboard is not built ({error}); {way_out}") from error
    assert built.inputs == inputs.digest(web), f"the dashboard was built from other sources; {way_out}"
