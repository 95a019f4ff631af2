"""`/ui/`: what browsers get of the dashboard, from a service that runs while it is built."""

import http.client
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin
from zipfile import ZipFile

import httpx2
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from api import bundle
from api.app import create_app
from api.dashboard import GUARDS
from jobs import tokens
from jobs.access import Access, Role
from tests.api_server import ApiServer
from tests.children import start_child
from tests.integration.conftest import copy_of_sqlite
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
PAGE = """<!doctype html>
<html>
  <head>
    <script type="module" src="./assets/index-1f.js"></script>
  </head>
  <body></body>
</html>
"""
SCRIPT = "export const words = 'of the dashboard'\n" * 50
BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8", "Accept-Encoding": "gzip, deflate, br"}
PLAIN = {"Accept-Encoding": "identity"}
SERVE = (
    "import sys; from pathlib import Path; from api import dashboard; dashboard.STATIC = Path(sys.argv.pop(1)); "
    "from api.__main__ import main; main()"
)
"""`python -m api` with another folder of the dashboard."""


class Serving(ApiServer):
    """The API with a dashboard of the tests, or none."""

    def __init__(self, database_url: str, folder: Path, **settings: Any) -> None:
        super().__init__(database_url, folder, **settings)
        self.static = folder / "static"

    def start(self) -> None:
        """Start it and return once it answers."""
        command = [sys.executable, "-c", SERVE, str(self.static), "--port", str(self.port)]
        self._process = start_child(command, log=self.log, folder=self._folder, environment=self._environment)
        wait_until(self._answers, timeout_s=30, what=lambda: f"the API to answer; its log:\n{self.log.read_text()}")

    def build(self, page: str = PAGE, **assets: str) -> None:
        """Put a build in place, as the build does."""
        new = self.static.with_name("new")
        write_build(new, page, **assets)
        if self.static.exists():
            self.static.rename(self.static.with_name("old"))
        new.rename(self.static)
        shutil.rmtree(self.static.with_name("old"), ignore_errors=True)

    def raw(self, path: str, method: str = "GET") -> http.client.HTTPResponse:
        """Ask for exactly this path, which clients would tidy up."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request(method, path, headers={"Accept": "text/html"})
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer


def write_build(folder: Path, page: str = PAGE, **assets: str) -> None:
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text(page)
    (folder / "favicon.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    (folder / "assets" / "inter-0a.woff2").write_bytes(b"wOF2" + bytes(range(256)))
    for name, text in ({"index-1f": SCRIPT} | assets).items():
        (folder / "assets" / f"{name}.js").write_text(text)
    bundle.complete(folder, inputs="of the tests", node=22)


@pytest.fixture(scope="module")
def api(migrated_sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("api")
    with Serving(copy_of_sqlite(migrated_sqlite_template, folder), folder) as server:
        server.build()
        yield server


@pytest.fixture
def own_api(migrated_sqlite_template: Path, tmp_path: Path) -> Iterator[Serving]:
    """One that has no dashboard yet."""
    with Serving(copy_of_sqlite(migrated_sqlite_template, tmp_path), tmp_path) as server:
        yield server


@pytest.fixture(scope="module")
def guarded_api(migrated_sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """One that asks for tokens."""
    folder = tmp_path_factory.mktemp("guarded")
    server = Serving(copy_of_sqlite(migrated_sqlite_template, folder), folder, access="tokens")
    with server.database.session_scope() as session:
        tokens.create(session, "root", Role.ADMIN, token_name="of the tests", days=None)
    server.build()
    with server:
        yield server


def script_of(api: Serving, **headers: str) -> httpx2.Response:
    return api.http.get("/ui/assets/index-1f.js", headers=PLAIN | headers)


def test_a_browser_is_led_from_the_root_to_the_dashboard(api: Serving) -> None:
    for path in ("/", "/ui"):
        answer = api.http.get(path, headers=BROWSER, follow_redirects=False)
        assert answer.status_code == 307
        assert urljoin(f"{api.url}{path}", answer.headers["Location"]) == f"{api.url}/ui/"
    assert api.http.get("/", headers=BROWSER, follow_redirects=True).text.startswith("<!doctype html>")


def test_a_program_finds_nothing_at_the_root(api: Serving) -> None:
    answer = api.http.get("/")
    assert (answer.status_code, answer.headers["Content-Type"]) == (404, "application/problem+json")
    assert "/docs" in answer.json()["detail"]


@pytest.mark.parametrize("path", ["/ui/", "/ui/index.html", "/ui/jobs", "/ui/jobs/7", "/ui/hosts/gpu-1.example.org"])
def test_every_page_is_the_one_page_and_is_asked_for_anew_each_time(api: Serving, path: str) -> None:
    answer = api.http.get(path, headers=BROWSER)
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert answer.headers["Cache-Control"] == "no-cache"
    assert answer.headers.items() >= {name.lower(): value for name, value in GUARDS.items()}.items()
    assert re.sub(r'<base[^>]*><meta name="rankzero-access" content="loopback">', "", answer.text) == PAGE


@pytest.mark.parametrize(
    "path", ["/ui/", "/ui/jobs", "/ui/jobs/", "/ui/jobs/7", "/ui/a/b/c/d", "/ui/jobs%2F7", "/ui/jobs/7?a=/b/c"]
)
@pytest.mark.parametrize("prefix", ["", "/behind/a/proxy"])
def test_the_page_finds_its_files_and_the_api_below_whatever_prefix_a_proxy_takes_off(
    api: Serving, path: str, prefix: str
) -> None:
    (base,) = re.findall(r'<head><base href="([^"]*)">', api.http.get(path, headers=BROWSER).text)
    as_the_browser_knows_it = f"https://gpu.example.org{prefix}{path}"
    assert urljoin(as_the_browser_knows_it, base) == f"https://gpu.example.org{prefix}/ui/"


def test_the_page_of_an_application_within_another_one_finds_its_files(tmp_path: Path) -> None:
    write_build(tmp_path / "static")
    outer = FastAPI()
    outer.mount("/rankzero", create_app(Access.LOOPBACK, dashboard=tmp_path / "static"))
    client = TestClient(outer, base_url="http://127.0.0.1", client=("127.0.0.1", 50000))
    assert '<base href="../">' in client.get("/rankzero/ui/jobs/7").text
    assert client.get("/rankzero/ui/assets/index-1f.js").text == SCRIPT


@pytest.mark.parametrize(
    ("path", "media_type", "cached"),
    [
        ("assets/index-1f.js", "text/javascript; charset=utf-8", "public, max-age=31536000, immutable"),
        ("assets/inter-0a.woff2", "font/woff2", "public, max-age=31536000, immutable"),
        ("favicon.svg", "image/svg+xml", "no-cache"),
    ],
)
def test_files_have_their_type_and_those_with_a_digest_in_their_name_are_kept(
    api: Serving, path: str, media_type: str, cached: str
) -> None:
    answer = api.http.get(f"/ui/{path}", headers=PLAIN)
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, media_type)
    assert answer.headers["Cache-Control"] == cached
    assert answer.headers.items() >= {name.lower(): value for name, value in GUARDS.items()}.items()
    assert answer.content == (api.static / path).read_bytes()


def test_a_script_of_the_service_alone_may_run_and_no_other_site_may_show_the_page(api: Serving) -> None:
    policy = dict(part.split(" ", 1) for part in api.http.get("/ui/").headers["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == policy["connect-src"] == "'self'"
    assert "script-src" not in policy
    assert policy["object-src"] == policy["frame-ancestors"] == "'none'"
    assert "http" not in str(policy)


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ("gzip", "gzip"),
        ("br, GZIP;q=0.5", "gzip"),
        ("identity", None),
        ("gzip;q=0", None),
        ("br, gzip; q=0.0", None),
        ("xgzip", None),
    ],
)
@pytest.mark.parametrize("path", ["/ui/assets/index-1f.js", "/ui/jobs/7"])
def test_a_text_is_compressed_for_whom_takes_that(api: Serving, path: str, accepted: str, coding: str | None) -> None:
    plain = api.http.get(path, headers=PLAIN)
    answer = api.http.get(path, headers={"Accept-Encoding": accepted})
    assert answer.headers.get("Content-Encoding") == coding
    assert answer.headers["Vary"] == "Accept-Encoding"
    assert answer.content == plain.content
    assert (answer.headers["ETag"] == plain.headers["ETag"]) is (coding is None)
    if coding:
        assert int(answer.headers["Content-Length"]) < len(plain.content)


def test_what_is_compressed_already_is_not_compressed_again(api: Serving) -> None:
    answer = api.http.get("/ui/assets/inter-0a.woff2", headers={"Accept-Encoding": "gzip"})
    assert "Content-Encoding" not in answer.headers
    assert "Vary" not in answer.headers


@pytest.mark.parametrize("path", ["/ui/assets/index-1f.js", "/ui/jobs/7", "/ui/favicon.svg"])
@pytest.mark.parametrize("accepted", ["gzip", "identity"])
def test_what_a_browser_has_is_not_sent_again(api: Serving, path: str, accepted: str) -> None:
    tag = api.http.get(path, headers={"Accept-Encoding": accepted}).headers["ETag"]
    for known in (tag, f"W/{tag}", f'"another", {tag}'):
        answer = api.http.get(path, headers={"Accept-Encoding": accepted, "If-None-Match": known})
        assert (answer.status_code, answer.content, answer.headers["ETag"]) == (304, b"", tag)
    assert api.http.get(path, headers={"If-None-Match": '"another"'}).status_code == 200


@pytest.mark.parametrize("path", ["/ui/", "/ui/assets/index-1f.js", "/ui/assets/none.js", "/", "/ui"])
def test_head_has_the_headers_of_get(api: Serving, path: str) -> None:
    asked, looked = (
        api.http.request(method, path, headers=BROWSER, follow_redirects=False) for method in ("GET", "HEAD")
    )
    assert (looked.status_code, looked.content) == (asked.status_code, b"")
    of_each = {"date", "x-request-id"}
    assert {name: value for name, value in looked.headers.items() if name not in of_each} == {
        name: value for name, value in asked.headers.items() if name not in of_each
    }


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_the_dashboard_takes_nothing_but_get(api: Serving, method: str) -> None:
    answer = api.http.request(method, "/ui/jobs")
    assert (answer.status_code, answer.headers["Allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(
    "path",
    [
        "/ui/assets/none.js",
        "/ui/assets/none",
        "/ui/assets/",
        "/ui/none.css",
        "/ui/build.json",  # it is no part of the dashboard
        "/ui/assets/index-1f.js.gz",
        "/ui/../dashboard.py.js",
        "/ui/%2e%2e/bundle.json",
        "/ui/..%2f..%2fpyproject.json",
        "/ui/%2e%2e%2fapi.log.txt",
        "/ui/assets/../../api.log.txt",
        "/ui//etc/hosts.txt",
        "/ui/assets/%00index-1f.js",
        "/ui%2fjobs",
        "/%75i%2f",
        "/ui" + "/a" * 20,
        "/uix",
    ],
)
def test_what_is_no_file_of_the_build_is_not_there(api: Serving, path: str) -> None:
    assert api.raw(path).status == 404


def test_no_path_leads_to_a_file_that_the_build_has_not_made(api: Serving) -> None:
    secret = api.static.parent / "secret.txt"
    secret.write_text("a secret")
    try:
        (api.static / "assets" / "added.js").write_text("alert(1)")
        (api.static / "linked.txt").symlink_to(secret)
        (api.static / "linked").symlink_to(api.static.parent)
        for path in ("/ui/assets/added.js", "/ui/linked.txt", "/ui/linked/secret.txt", "/ui/../secret.txt"):
            assert api.raw(path).status == 404, path
    finally:
        for name in ("assets/added.js", "linked.txt", "linked"):
            (api.static / name).unlink()


def test_without_a_token_the_dashboard_answers_and_the_api_behind_it_does_not(guarded_api: Serving) -> None:
    for path in ("/ui/", "/ui/jobs/7", "/ui/assets/index-1f.js"):
        assert guarded_api.http.get(path, headers=BROWSER).status_code == 200, path
    assert guarded_api.http.get("/", headers=BROWSER).status_code == 307
    assert guarded_api.http.get("/").status_code == 404
    for path in ("/jobs", "/me", "/uix", "/ui%2e/jobs", "//ui/jobs", "//healthz", "//"):
        assert guarded_api.raw(path).status == 401, path
    for path in ("/ui/../jobs", "/ui/%2e%2e/jobs", "/ui/..%2fjobs"):
        assert guarded_api.raw(path).status == 404, path


def test_on_its_own_machine_it_is_not_served_under_another_name(api: Serving) -> None:
    assert api.http.get("/ui/", headers={"Host": "rebound.example.org"}).status_code == 421
    assert api.http.get("/", headers=BROWSER | {"Host": "rebound.example.org"}).status_code == 421


def test_it_is_no_part_of_the_schema(api: Serving) -> None:
    assert not [path for path in api.http.get("/openapi.json").json()["paths"] if path == "/" or path.startswith("/ui")]


def test_a_build_that_is_missing_is_told_of_until_it_is_there_with_no_restart(own_api: Serving) -> None:
    missing = own_api.http.get("/ui/jobs", headers=BROWSER)
    assert (missing.status_code, missing.headers["Cache-Control"]) == (503, "no-store")
    assert "make dashboard" in missing.text
    assert "python -m api.web.build" in missing.text
    assert missing.headers.items() >= {name.lower(): value for name, value in GUARDS.items()}.items()
    assert script_of(own_api).status_code == 404
    assert own_api.http.get("/jobs").status_code == 200

    own_api.build()
    assert PAGE[-20:] in own_api.http.get("/ui/jobs", headers=BROWSER).text


def test_a_build_that_replaces_another_one_counts_at_once(own_api: Serving) -> None:
    own_api.build()
    assert script_of(own_api).status_code == 200
    own_api.build(PAGE.replace("index-1f", "index-2e"), **{"index-2e": "export const newer = true"})
    assert "index-2e" in own_api.http.get("/ui/", headers=BROWSER).text
    assert own_api.http.get("/ui/assets/index-2e.js").text == "export const newer = true"


def test_while_builds_replace_one_another_every_answer_is_of_one_of_them(own_api: Serving) -> None:
    own_api.build("<head>0", **{"of-0": "0"})
    assert own_api.http.get("/ui/").status_code == 200
    told: list[tuple[int, str]] = []
    over = threading.Event()

    def reload() -> None:
        with httpx2.Client(base_url=own_api.url) as client:
            while not over.is_set():
                answer = client.get("/ui/")
                told.append((answer.status_code, re.sub(r"<[^>]*>", "", answer.text)))

    browser = threading.Thread(target=reload)
    browser.start()
    for number in range(1, 60):
        own_api.build(f"<head>{number}", **{f"of-{number}": str(number)})
    wait_until(lambda: told[-1] == (200, "59"), timeout_s=10, what="the last build to be served")
    over.set()
    browser.join()

    assert {status for status, _ in told} == {200}
    numbers = [int(number) for _, number in told]
    assert numbers == sorted(numbers)
    assert len(set(numbers)) > 5


def test_a_build_that_is_damaged_is_not_served_and_the_log_says_so(own_api: Serving) -> None:
    own_api.build()
    (own_api.static / "assets" / "index-1f.js").write_text("something else")
    assert own_api.http.get("/ui/", headers=BROWSER).status_code == 503
    assert "dashboard_unreadable" in own_api.log.read_text()
    assert "index-1f.js is not the file that was built" in own_api.log.read_text()


def test_the_wheel_has_the_dashboard_and_none_of_its_sources(tmp_path: Path) -> None:
    context = tmp_path / "context"
    (context / "api").mkdir(parents=True)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, context)
    for path in (ROOT / "api").glob("*.py"):
        shutil.copy(path, context / "api")
    write_build(context / "api" / "static")
    (context / "api" / "web" / "src").mkdir(parents=True)
    for name in ("__init__.py", "build.py", "package.json", "src/main.ts"):
        (context / "api" / "web" / name).write_text("")
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index", "--quiet"]
    subprocess.run([*pip, "--wheel-dir", str(tmp_path), "."], cwd=context, check=True)

    (wheel,) = tmp_path.glob("rankzero-*.whl")
    with ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    assert bundle.read(tmp_path / "installed" / "api" / "static") == bundle.read(context / "api" / "static")
    assert not (tmp_path / "installed" / "api" / "web").exists()
