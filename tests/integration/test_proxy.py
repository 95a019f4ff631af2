"""deploy/nginx.conf, with a real nginx: what comes through it is what the API would have answered itself."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from api.errors import MAX_BODY_BYTES
from tests.children import start_child
from tests.deployment import DEPLOY
from tests.integration.conftest import copy_of_sqlite
from tests.integration.events import events_of
from tests.integration.guarded_api import GuardedApi
from tests.ports import PortClaim
from tests.waiting import wait_until

NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}{os.pathsep}/usr/sbin")
AROUND = """
{user}
daemon off;
error_log stderr;
pid {folder}/pid;
events {{ }}
http {{
    access_log {folder}/access.log;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {site}
}}
"""

USER = "user root;" if os.geteuid() == 0 else ""
"""Else its processes are nobody's, who reads no folder of the tests."""

pytestmark = pytest.mark.skipif(NGINX is None, reason="there is no nginx here")


class ProxiedApi(GuardedApi):
    """An API that believes a proxy on this machine."""

    options = ("--forwarded-allow-ips", "127.0.0.1")


@pytest.fixture(scope="module")
def api(migrated_sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxiedApi]:
    folder = tmp_path_factory.mktemp("proxied-api")
    with ProxiedApi(copy_of_sqlite(migrated_sqlite_template, folder), folder) as server:
        yield server


@pytest.fixture(scope="module")
def proxy(api: ProxiedApi, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    """A client of nginx, with the token of a submitter, that does not look whose certificate it is."""
    folder = tmp_path_factory.mktemp("nginx")
    make_certificate(folder)
    claim = PortClaim()
    site = (DEPLOY / "nginx.conf").read_text()
    for old, new in {
        "listen 443 ssl;": f"listen 127.0.0.1:{claim.port} ssl;",
        "/etc/ssl/rankzero/": f"{folder}/",
        "127.0.0.1:8001": api.url.removeprefix("http://"),
        # The other process is down: nobody is to notice.
        "127.0.0.1:8002": "127.0.0.1:9",
    }.items():
        assert old in site
        site = site.replace(old, new)
    (folder / "nginx.conf").write_text(AROUND.format(user=USER, folder=folder, site=site))
    log = folder / "log"
    nginx = start_child([str(NGINX), "-p", str(folder), "-c", "nginx.conf"], log=log, folder=folder)
    headers = {"Authorization": f"Bearer {api.tokens['alice']}"}
    try:
        with httpx2.Client(
            base_url=f"https://127.0.0.1:{claim.port}", verify=False, headers=headers, timeout=30
        ) as client:
            wait_until(lambda: answers(client), timeout_s=20, what=lambda: f"nginx; its log:\n{log.read_text()}")
            yield client
    finally:
        nginx.terminate()
        nginx.wait(timeout=20)
        claim.release()


def make_certificate(folder: Path) -> None:
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    keys = ["-keyout", str(folder / "privkey.pem"), "-out", str(folder / "fullchain.pem")]
    subprocess.run([*command, *keys], check=True, capture_output=True)


def answers(client: httpx2.Client) -> bool:
    try:
        return client.get("/readyz").status_code == 200
    except httpx2.TransportError:
        return False


def test_events_pass_one_by_one(api: ProxiedApi, proxy: httpx2.Client) -> None:
    with proxy.stream("GET", "/events", params={"topics": "jobs"}) as answer:
        events = events_of(answer)
        assert next(events).kind == "hello"
        # Only after the first event has come does the second happen: a proxy that gathers them would wait for ever.
        job_id = api.submit_by("alice")
        assert next(events).data["job_id"] == job_id


def test_a_request_has_one_id_whoever_made_it(api: ProxiedApi, proxy: httpx2.Client) -> None:
    given = proxy.get("/me", headers={"X-Request-ID": "of-the-caller"})
    made = proxy.get("/me")
    assert given.headers["X-Request-ID"] == "of-the-caller"
    assert re.fullmatch(r"[0-9a-f]{32}", made.headers["X-Request-ID"])
    wait_until(
        lambda: {"of-the-caller", made.headers["X-Request-ID"]} <= {line.get("request_id") for line in lines_of(api)},
        timeout_s=10,
        what=lambda: f"both ids in the log:\n{api.log.read_text()}",
    )


def lines_of(api: ProxiedApi) -> list[dict[str, Any]]:
    return [json.loads(line) for line in api.log.read_text().splitlines() if line.startswith("{")]


def test_what_is_too_large_is_refused_in_the_form_that_the_api_has_for_it(proxy: httpx2.Client) -> None:
    as_json = {"Content-Type": "application/json"}
    refused = proxy.post("/jobs", content=b" " * (MAX_BODY_BYTES + 1), headers=as_json)
    assert (refused.status_code, refused.headers["Content-Type"]) == (413, "application/problem+json")
    assert refused.json()["status"] == 413
    taken = proxy.post("/jobs", content=b" " * MAX_BODY_BYTES, headers=as_json)
    assert (taken.status_code, taken.headers["Content-Type"]) == (422, "application/problem+json")


def test_nobody_is_believed_to_come_from_elsewhere(proxy: httpx2.Client) -> None:
    statuses = [
        proxy.get(
            "/me", headers={"Authorization": f"Bearer rz_{'A' * 43}", "X-Forwarded-For": f"198.51.100.{number}"}
        ).status_code
        for number in range(12)
    ]
    assert statuses[0] == 401
    assert statuses[-1] == 429
