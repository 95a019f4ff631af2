"""Metrics over HTTP: thinned for a chart, as CSV, and by name."""

import csv
import io
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from jobs.states import Outcome
from jobs.store import series
from jobs.store.reports import MetricPoint
from tests.api_server import ApiServer
from tests.integration.running_job import RunningJob, start_job

AT = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
VALUES = 1000


@pytest.fixture(scope="module")
def run(api: ApiServer) -> Iterator[RunningJob]:
    """A job that has reported two long series, of which one has a gap."""
    run = start_job(api.database, api.submit(device="0,1"))
    for name in ("loss", "точность"):
        run.add(metrics=[point(name, step) for step in range(VALUES)])
    yield run
    run.end(Outcome.SUCCEEDED)


def point(name: str, step: int) -> MetricPoint:
    is_gap = name == "loss" and step == 500
    return MetricPoint(name, step, 1, AT, None if is_gap else float(step % 97), "inf" if is_gap else None)


def get(api: ApiServer, run: RunningJob, path: str = "", **params: Any) -> Any:
    answer = api.http.get(f"/jobs/{run.job_id}/metrics{path}", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_chart_is_answered_with_real_values_of_each_metric_and_its_gaps(api: ApiServer, run: RunningJob) -> None:
    answer = get(api, run, points=60)

    assert (answer["next_page"], answer["previous_page"]) == (None, None)
    for name in ("loss", "точность"):
        items = [item for item in answer["items"] if item["name"] == name]
        assert 30 <= len(items) <= 60
        assert (items[0]["step"], items[-1]["step"]) == (0, VALUES - 1)
        assert all(item["value"] == item["step"] % 97 for item in items if item["kind"] is None)
        assert {item["value"] for item in items} >= {0.0, 96.0}
    assert [(item["step"], item["value"]) for item in answer["items"] if item["kind"] == "inf"] == [(500, None)]


def test_a_series_with_no_more_values_than_points_is_answered_whole(api: ApiServer, run: RunningJob) -> None:
    items = get(api, run, name="loss", points=VALUES)["items"]
    assert [item["step"] for item in items] == list(range(VALUES))


def test_a_chart_is_limited_to_a_range_of_steps(api: ApiServer, run: RunningJob) -> None:
    items = get(api, run, name="loss", points=10, from_step=100, to_step=400)["items"]
    assert (items[0]["step"], items[-1]["step"]) == (100, 400)
    assert len(items) <= 10


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"points": 1}, "points"),
        ({"points": 10_001}, "points"),
        ({"points": 10, "size": 5}, "size"),
        ({"points": 10, "cursor": "x"}, "cursor"),
        ({"to_step": -1}, "to_step"),
        ({"format": "xml"}, "format"),
    ],
)
def test_what_makes_no_chart_is_refused(api: ApiServer, run: RunningJob, params: dict[str, Any], field: str) -> None:
    answer = api.http.get(f"/jobs/{run.job_id}/metrics", params=params)
    assert answer.status_code == 422
    assert [each["field"] for each in answer.json()["errors"]] == [field]


def test_more_values_than_one_answer_holds_are_refused_with_how_many_would_do(api: ApiServer, run: RunningJob) -> None:
    names = [f"metric {number}" for number in range(11)]
    answer = api.http.get(f"/jobs/{run.job_id}/metrics", params={"points": 10_000, "name": names})
    assert answer.status_code == 422
    assert "at most 9090 of each of 11 metrics" in answer.json()["detail"]


def test_the_metrics_of_a_job_are_listed_with_their_last_values(api: ApiServer, run: RunningJob) -> None:
    last = {"count": VALUES, "first_step": 0, "last_step": VALUES - 1, "last_value": 29.0, "last_kind": None}
    assert get(api, run, "/names")["items"] == [{"name": "loss"} | last, {"name": "точность"} | last]


@pytest.mark.parametrize(
    ("params", "headers"),
    [
        ({"format": "csv"}, {}),
        ({"format": "csv"}, {"Accept": "application/json"}),
        ({}, {"Accept": "text/csv"}),
        ({}, {"Accept": "application/json;q=0.5, text/csv, */*;q=0.1"}),
    ],
)
def test_all_values_come_as_csv_without_pages(
    api: ApiServer, run: RunningJob, params: dict[str, str], headers: dict[str, str]
) -> None:
    answer = api.http.get(f"/jobs/{run.job_id}/metrics", params=params, headers=headers)

    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "text/csv; charset=utf-8")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [(row["name"], int(row["step"])) for row in rows] == [
        (name, step) for name in ("loss", "точность") for step in range(VALUES)
    ]
    assert rows[1] == {
        "name": "loss",
        "step": "1",
        "epoch": "1",
        "attempt": "1",
        "at": "2026-03-01T12:30:00Z",
        "value": "1.0",
        "kind": "",
    }
    assert (rows[500]["value"], rows[500]["kind"]) == ("", "inf")


def test_json_is_answered_where_it_is_named_first(api: ApiServer, run: RunningJob) -> None:
    headers = {"Accept": "text/csv;q=0.9, application/json"}
    answer = api.http.get(f"/jobs/{run.job_id}/metrics", headers=headers)
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Vary"] == "Accept"


def test_a_chart_comes_as_csv_too(api: ApiServer, run: RunningJob) -> None:
    params: dict[str, Any] = {"format": "csv", "points": 20, "name": "loss"}
    answer = api.http.get(f"/jobs/{run.job_id}/metrics", params=params)
    assert 10 <= len(answer.text.splitlines()) - 1 <= 20


def test_an_export_is_longer_than_what_is_read_at_once(api: ApiServer, run: RunningJob) -> None:
    steps = series.PIECE_ROWS + 10
    for begin in range(0, steps, 1000):
        run.add(metrics=[point("long", step) for step in range(begin, min(begin + 1000, steps))])
    answer = api.http.get(f"/jobs/{run.job_id}/metrics", params={"format": "csv", "name": "long"})
    assert [int(row["step"]) for row in csv.DictReader(io.StringIO(answer.text))] == list(range(steps))


@pytest.mark.parametrize("path", ["/metrics/names", "/metrics?points=10", "/metrics?format=csv", "/logs/download"])
def test_what_a_missing_job_has_measured_is_not_found(api: ApiServer, path: str) -> None:
    assert api.http.get(f"/jobs/999999{path}").status_code == 404
