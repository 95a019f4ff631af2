"""A running service on PostgreSQL for the fault tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service import Service


@pytest.fixture
def service(postgresql_url: str, broker_url: str, tmp_path: Path) -> Iterator[Service]:
    """A service whose host `alpha` has two simulated CUDA devices; no worker runs yet."""
    with Service(postgresql_url, broker_url, tmp_path) as service:
        yield service
