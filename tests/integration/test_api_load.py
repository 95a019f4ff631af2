"""The API under more requests at once than it has threads: it slows down, and neither stops nor fails."""

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest

from tests.api_server import TRAIN, ApiServer
from tests.servers import ValkeyServer

AT_ONCE = 100


@pytest.mark.parametrize("method", ["POST", "GET"])
def test_more_requests_at_once_than_threads_are_all_answered(api: ApiServer, method: str) -> None:
    job_id = api.submit()
    body = {"device": "cpu", "train": TRAIN}

    def ask(_number: int) -> int:
        with httpx2.Client(base_url=api.url, timeout=60) as client:
            answer = client.post("/jobs", json=body) if method == "POST" else client.get(f"/jobs/{job_id}")
            return answer.status_code

    with ThreadPoolExecutor(AT_ONCE) as pool:
        assert set(pool.map(ask, range(AT_ONCE))) == {201 if method == "POST" else 200}


def test_a_broker_that_is_stopped_keeps_no_client_waiting(
    sqlite_url: str, valkey: ValkeyServer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with ApiServer(sqlite_url, tmp_path_factory.mktemp("api"), broker_url=valkey.url) as api:
        api.submit()
        os.kill(valkey.pid, signal.SIGSTOP)
        try:
            begun = time.monotonic()
            for _ in range(60):
                api.submit()
            # A second for each would be what waiting for the broker costs.
            assert time.monotonic() - begun < 30
        finally:
            os.kill(valkey.pid, signal.SIGCONT)
