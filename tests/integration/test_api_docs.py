"""`/docs`: all that it loads comes from the service, and without the package that carries it a line says so."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from api import docs_page
from api.app import create_app
from api.docs_page import PACKAGE
from tests.api_server import ApiServer
from tests.integration.conftest import api_on_sqlite


@pytest.fixture(scope="module")
def api(migrated_sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """The page asks no database."""
    with api_on_sqlite(migrated_sqlite_template, tmp_path_factory.mktemp("api")) as server:
        yield server


def test_the_page_loads_from_the_service_alone(api: ApiServer) -> None:
    page = api.http.get("/docs")
    assert page.status_code == 200
    loaded = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert len(loaded) == 3
    for path in loaded:
        assert path.startswith("/docs/")
        answer = api.http.get(path)
        assert answer.status_code == 200, path
        assert answer.content, path
    assert "http://" not in page.text
    assert "https://" not in page.text
    assert '"validatorUrl": null' in page.text


def test_a_browser_is_told_to_load_nothing_from_elsewhere(api: ApiServer) -> None:
    policy = api.http.get("/docs").headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert "http" not in policy


def test_without_the_package_a_line_says_what_is_missing_and_where_the_schema_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(docs_page, "find_spec", lambda _name: None)
    answer = TestClient(create_app()).get("/docs")
    assert answer.status_code == 404
    assert PACKAGE.replace("_", "-") in answer.json()["detail"]
    assert "/openapi.json" in answer.json()["detail"]


def test_neither_page_leads_to_a_file_outside_of_the_package(api: ApiServer) -> None:
    for path in ("/docs/../core.py", "/docs/%2e%2e/core.py", "/docs/..%2fcore.py", "/docs//etc/passwd", "/docs/"):
        assert api.http.get(path).status_code == 404, path
