"""The id of a request: in its answer, in its problem document, and in every line of the log that tells of it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.api_server import ApiServer
from tests.conftest import drop
from tests.servers import PostgresServer
from tests.waiting import wait_until


def lines_of(api: ApiServer, request_id: str, *, last: str = "ms") -> list[dict[str, Any]]:
    """The lines of the log, each of them JSON, that tell of a request, once one of them has the field `last`."""

    def told() -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in api.log.read_text().splitlines()]
        return [line for line in lines if line.get("request_id") == request_id]

    wait_until(lambda: any(last in line for line in told()), timeout_s=10, what="the request's line")
    return told()


def test_an_id_that_the_caller_gives_comes_back_and_stands_in_the_log(api: ApiServer) -> None:
    answer = api.http.get("/jobs", headers={"X-Request-ID": "pipeline-7/step:2"})
    assert answer.headers["X-Request-ID"] == "pipeline-7/step:2"
    (line,) = lines_of(api, "pipeline-7/step:2")
    assert {name: line[name] for name in ("event", "method", "path", "route", "status")} == {
        "event": "request",
        "method": "GET",
        "path": "/jobs",
        "route": "/jobs",
        "status": 200,
    }
    assert line["ms"] > 0


def test_each_request_without_an_id_gets_one_of_its_own(api: ApiServer) -> None:
    ids = {api.http.get("/healthz").headers["X-Request-ID"] for _ in range(3)}
    assert [len(each) for each in ids] == [32] * 3


@pytest.mark.parametrize("given", ["", "a b", "x" * 65, 'x"y', "<script>"])
def test_an_id_that_a_log_or_a_column_could_not_take_is_replaced(api: ApiServer, given: str) -> None:
    assert len(api.http.get("/healthz", headers={"X-Request-ID": given}).headers["X-Request-ID"]) == 32


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/nothing", 404), ("DELETE", "/jobs", 405), ("GET", "/jobs/0", 422)]
)
def test_a_problem_names_its_request(api: ApiServer, method: str, path: str, status: int) -> None:
    answer = api.http.request(method, path)
    assert answer.status_code == status
    assert answer.json()["request_id"] == answer.headers["X-Request-ID"]


def test_a_body_that_is_refused_unread_has_an_id_and_a_line_as_well(api: ApiServer) -> None:
    answer = api.http.post("/jobs", content=b" " * 2_000_000, headers={"Content-Type": "application/json"})
    (line,) = lines_of(api, answer.headers["X-Request-ID"])
    assert (answer.status_code, answer.json()["request_id"]) == (413, line["request_id"])
    assert line["status"] == 413


def test_the_job_of_a_request_stands_in_its_lines(api: ApiServer) -> None:
    submitted = api.post("/jobs", {"device": "cpu", "train": {"model": "resnet18", "data": "digits"}})
    shown = api.http.get(f"/jobs/{submitted.json()['id']}/events")
    for answer in (submitted, shown):
        (line,) = lines_of(api, answer.headers["X-Request-ID"])
        assert line["job_id"] == submitted.json()["id"]
    assert line["route"] == "/jobs/{job_id}/events"


def test_neither_a_query_nor_a_header_is_logged(api: ApiServer) -> None:
    answer = api.http.get("/jobs?name=hush-query", headers={"Authorization": "Bearer rz_hush-token", "Cookie": "hush"})
    assert lines_of(api, answer.headers["X-Request-ID"])
    assert "hush" not in api.log.read_text()


def test_a_failure_of_the_service_is_logged_with_the_request_and_where_it_was(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    url = postgres.create_database()  # it has no tables, which no request expects
    try:
        with ApiServer(url, tmp_path) as api:
            answer = api.http.get("/jobs")
            lines = lines_of(api, answer.headers["X-Request-ID"], last="exception")
    finally:
        drop(postgres, url)
    assert (answer.status_code, answer.json()["request_id"]) == (500, answer.headers["X-Request-ID"])
    traceback = next(line["exception"] for line in lines if "exception" in line)
    assert traceback[-1]["frames"]
    assert not any(frame.get("locals") for each in traceback for frame in each["frames"])  # secrets are among them
