"""`npm run dev`: the dashboard from its sources, beside a service that has all the other paths."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from api.web.inputs import WEB
from api.web.node import find_node
from tests.api_server import ApiServer
from tests.children import start_child
from tests.integration.conftest import api_on_sqlite
from tests.ports import PortClaim
from tests.waiting import wait_until

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.fixture(scope="module")
def api(migrated_sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    with api_on_sqlite(migrated_sqlite_template, tmp_path_factory.mktemp("api")) as server:
        yield server


@pytest.fixture(scope="module")
def dev(api: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    """A client of it."""
    node, claim, log = find_node(), PortClaim(), tmp_path_factory.mktemp("dev") / "dev.log"
    path = f"{node.folder}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    command = [*node.npm, "run", "dev", "--", "--host", "127.0.0.1", "--port", str(claim.port), "--strictPort"]
    process = start_child(
        command, log=log, folder=WEB, environment=os.environ | {"PATH": path, "RANKZERO_URL": api.url}
    )
    with httpx2.Client(base_url=f"http://127.0.0.1:{claim.port}", timeout=30) as client:

        def answers() -> bool:
            assert process.poll() is None, f"it ended while starting; its log:\n{log.read_text()}"
            try:
                return client.get("/ui/", headers=BROWSER).is_success
            except httpx2.TransportError:
                return False

        try:
            wait_until(answers, timeout_s=60, what=lambda: f"it to answer; its log:\n{log.read_text()}")
            yield client
        finally:
            os.killpg(process.pid, signal.SIGTERM)  # npm and what it has started
            process.wait(timeout=20)
            claim.release()


@pytest.mark.timeout(120)
@pytest.mark.parametrize("path", ["/", "/ui", "/ui/", "/ui/jobs/7", "/ui/hosts/gpu-1.example.org"])
def test_every_page_is_the_page_and_knows_where_it_lies(dev: httpx2.Client, path: str) -> None:
    answer = dev.get(path, headers=BROWSER, follow_redirects=True)
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "text/html")
    assert '<base href="/ui/">' in answer.text
    assert 'src="/ui/src/main.tsx"' in answer.text
    assert dev.get("/ui/src/main.tsx").headers["Content-Type"] == "text/javascript"


@pytest.mark.timeout(120)
@pytest.mark.parametrize("path", ["/jobs", "/me", "/secrets", "/openapi.json"])
def test_every_other_path_is_the_service_s(api: ApiServer, dev: httpx2.Client, path: str) -> None:
    assert dev.get(path, headers=BROWSER).text == api.http.get(path).text


@pytest.mark.timeout(120)
def test_what_the_page_sends_reaches_the_service(dev: httpx2.Client) -> None:
    answer = dev.post("/jobs", json={}, headers={"Origin": str(dev.base_url).rstrip("/")})
    assert answer.status_code == 422
