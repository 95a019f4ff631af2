"""Liveness and readiness."""

import json
from pathlib import Path

from tests.api_server import ApiServer
from tests.servers import ValkeyServer


def test_a_silent_broker_is_reported_and_the_service_is_ready_all_the_same(api: ApiServer) -> None:
    answer = api.http.get("/readyz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ready", "broker": "silent"})


def test_a_broker_that_answers_is_reported(sqlite_url: str, valkey: ValkeyServer, tmp_path: Path) -> None:
    with ApiServer(sqlite_url, tmp_path, broker_url=valkey.url) as api:
        assert api.http.get("/readyz").json() == {"status": "ready", "broker": "answers"}


def test_a_database_without_the_schema_is_not_ready_and_says_what_to_do(
    empty_database_url: str, tmp_path: Path
) -> None:
    with ApiServer(empty_database_url, tmp_path) as api:
        answer = api.http.get("/readyz")
    assert answer.status_code == 503
    assert "python -m jobs.database upgrade" in answer.json()["detail"]


def test_a_process_that_has_begun_to_serve_says_where_in_its_log(sqlite_url: str, tmp_path: Path) -> None:
    with ApiServer(sqlite_url, tmp_path) as api:
        first = json.loads(api.log.read_text().splitlines()[0])
    assert (first["event"], first["at"]) == ("listening", [api.url.removeprefix("http://").replace(":", " port ")])
