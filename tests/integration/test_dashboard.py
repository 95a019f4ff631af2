"""`/ui/`: what browsers get of a dashboard that is built."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from api.app import create_app
from api.dashboard import GUARDS
from jobs import tokens
from jobs.access import Access, Role
from tests.integration.conftest import copy_of_sqlite
from tests.integration.served_dashboard import BROWSER, PAGE, PLAIN, SCRIPT, Serving, write_build


@pytest.fixture(scope="module")
def api(migrated_sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("api")
    with Serving(copy_of_sqlite(migrated_sqlite_template, folder), folder) as server:
        server.build()
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
