"""Bad requests: each gets a problem document that names what was wrong, and none reaches the database as a fault."""

from base64 import urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from sqlalchemy import delete

from jobs.store import hosts
from jobs.tables import Host
from tests.api_server import TRAIN, ApiServer
from tests.servers import PostgresServer

JSON = {"Content-Type": "application/json"}


def problem_of(answer: Any, status: int) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    problem = answer.json()
    assert problem["status"] == status
    assert problem["title"]
    assert problem["detail"]
    assert isinstance(problem, dict)
    return problem


def fields_of(answer: Any) -> dict[str, str]:
    return {each["field"]: each["message"] for each in problem_of(answer, 422)["errors"]}


@pytest.mark.parametrize(
    ("body", "field", "message"),
    [
        ({"train": TRAIN, "devise": "0"}, "devise", "no such field; did you mean device?"),
        ({"train": TRAIN | {"epoch": 3}}, "train.epoch", "no such field; did you mean epochs?"),
        ({"train": TRAIN, "epochs": 3}, "epochs", "no such field; `epochs` stands in `train`"),
        ({"train": {"data": "digits"}}, "train.model", "has to be given"),
        ({"device": "0,0", "train": TRAIN}, "device", "'0' is listed twice"),
        ({"device": "cuda:", "train": TRAIN}, "device", "'cuda:'"),
        ({"device": "0-3", "train": TRAIN}, "device", "'0-3'"),
        ({"device": "", "train": TRAIN}, "device", "''"),
        ({"device": "-1", "train": TRAIN}, "device", "'-1'"),
        ({"device": "0,-1", "train": TRAIN}, "device", "'-1'"),
        ({"device": "cuda:0,cpu", "train": TRAIN}, "device", "'cpu'"),
        ({"device": ["0", "1"], "train": TRAIN}, "device", "'0'"),
        ({"device": True, "train": TRAIN}, "device", "True"),
        ({"device": {"count": 0}, "train": TRAIN}, "device.count", "greater than or equal to 1"),
        ({"device": "0,1,2", "train": TRAIN | {"batch": 10}}, "train.batch", "9 or 12"),
        ({"train": TRAIN | {"batch": 0}}, "train.batch", "1 sample or more; -1 takes as many as fit"),
        ({"device": "0,1,2", "train": TRAIN | {"batch": -1, "nbs": 2}}, "train.nbs", "the least for them is 3"),
        ({"device": "0,1", "nproc_per_node": 4, "train": TRAIN}, "nproc_per_node", "4 processes do not fit"),
        ({"name": "n" * 300, "train": TRAIN}, "name", "at most 255 characters"),
        ({"n" * 300: 1, "train": TRAIN}, "n" * 255, "no such field"),
        ({"name": "a\x00b", "train": TRAIN}, "name", "match pattern"),
        ({"labels": {"a\x00": "b"}, "train": TRAIN}, "labels.a\ufffd.[key]", "match pattern"),
        ({"train": TRAIN | {"seed": 2**70}}, "train.seed", "less than or equal"),
        ({"train": TRAIN | {"epochs": "many"}}, "train.epochs", "integer"),
    ],
)
def test_a_bad_spec_names_the_field(api: ApiServer, body: dict[str, Any], field: str, message: str) -> None:
    fields = fields_of(api.post("/jobs", body))
    assert list(fields) == [field]
    assert message in fields[field]


def test_what_is_wrong_with_a_field_is_told_in_our_own_words_alone(api: ApiServer) -> None:
    fields = fields_of(api.post("/jobs", {"train": TRAIN | {"batch": 0}}))
    assert fields == {"train.batch": "a batch has 1 sample or more; -1 takes as many as fit"}


def test_every_bad_field_is_named_at_once(api: ApiServer) -> None:
    body = {"device": "0,0", "priority": 101, "train": TRAIN | {"batch": 0, "lr": -1}}
    assert set(fields_of(api.post("/jobs", body))) == {"device", "priority", "train.batch", "train.lr"}


@pytest.mark.parametrize(
    "body",
    [
        "{]",
        "nonsense",
        '"text"',
        "[]",
        "null",
        '{"train": {"model": "m", "data": "d", "lr": NaN}}',
        '{"train": {"model": "m", "data": "d", "lr": 1e999}}',
        '{"train": {"model": "\\ud800", "data": "d"}}',
        '{"\\ud800": 1}',
        '{"train": {"model": "m", "data": "d", "options": {"a": [{"b": "\\udfff"}]}}}',
        "[" * 100_000,
        '{"a":' * 100_000,
        '{"train": ' + "[" * 900 + "]" * 900 + "}",
    ],
    ids=lambda body: body[:12] + body[-12:],
)
def test_what_is_no_spec_at_all_is_refused_as_such(api: ApiServer, body: str) -> None:
    problem_of(api.http.post("/jobs", content=body, headers=JSON), 422)


def test_an_unreadable_number_is_refused(api: ApiServer) -> None:
    body = '{"priority": ' + "9" * 5000 + ', "train": {"model": "m", "data": "d"}}'
    problem_of(api.http.post("/jobs", content=body, headers=JSON), 400)


def test_a_body_that_is_not_announced_as_json_is_told_so(api: ApiServer) -> None:
    problem = problem_of(api.http.post("/jobs", content="{}", headers={"Content-Type": "text/plain"}), 415)
    assert "Content-Type: application/json" in problem["detail"]


def test_a_body_that_announces_too_many_bytes_is_refused(api: ApiServer) -> None:
    problem_of(api.http.post("/jobs", content=b" " * 2_000_000, headers=JSON), 413)


def test_an_endless_body_and_deep_ones_are_refused_with_flat_memory(api: ApiServer) -> None:
    def endless() -> Iterator[bytes]:
        while True:
            yield b" " * 65_536

    process = psutil.Process(api.pid)
    problem_of(api.http.post("/jobs", content="[" * 100_000, headers=JSON), 422)
    before = process.memory_info().rss
    for _ in range(10):
        answer = api.http.post("/jobs", content=endless(), headers=JSON)
        problem_of(answer, 413)
        problem_of(api.http.post("/jobs", content="[" * 1_000_000, headers=JSON), 422)
    assert process.memory_info().rss - before < 32 * 1024 * 1024


@pytest.mark.parametrize("path", ["/jobs/999999", "/jobs/999999/metrics", "/jobs/999999/checkpoints"])
def test_what_belongs_to_no_job_is_not_found(api: ApiServer, path: str) -> None:
    assert problem_of(api.http.get(path), 404)["detail"] == "no job 999999"


@pytest.mark.parametrize("kind", ["attempts", "events", "logs"])
def test_no_part_of_a_missing_job_is_found(api: ApiServer, kind: str) -> None:
    problem_of(api.http.get(f"/jobs/999999/{kind}"), 404)


def test_cancelling_a_missing_job_is_not_found(api: ApiServer) -> None:
    problem_of(api.http.post("/jobs/999999/cancel"), 404)


@pytest.mark.parametrize(
    "job_id", ["0", "-1", "9" * 20, "9" * 5000, "abc", "%00", "1.5", "1_0", "+1", "01", "%201", "%D9%A1"]
)
def test_an_id_that_is_none_is_refused(api: ApiServer, job_id: str) -> None:
    for answer in (api.http.get(f"/jobs/{job_id}"), api.http.post(f"/jobs/{job_id}/cancel")):
        assert list(fields_of(answer)) == ["job_id"]


@pytest.mark.parametrize("path", ["/nothing", "/jobs/", "/jobs/1/nothing", "/redoc", "/../etc/passwd", "/%00"])
def test_a_path_that_is_none_is_not_found(api: ApiServer, path: str) -> None:
    problem_of(api.http.get(path), 404)


def test_a_method_that_a_path_does_not_take_is_refused_with_those_it_takes(api: ApiServer) -> None:
    answer = api.http.delete("/jobs")
    problem_of(answer, 405)
    assert answer.headers["Allow"]


@pytest.mark.parametrize(
    ("path", "parameter"),
    [
        ("/jobs?colour=red", "colour"),
        ("/jobs?state=done", "state"),
        ("/jobs?state=queued&state=done", "state"),
        ("/jobs?label=team", "label"),
        ("/jobs?label=team=a&label=team=b", "label"),
        ("/jobs?label=a%00=b", "label"),
        ("/jobs?name=a%00", "name"),
        ("/jobs?sort=colour", "sort"),
        ("/jobs?created_after=0.5", "created_after"),
        ("/jobs?created_after=1700000000", "created_after"),
        ("/jobs?size=0", "size"),
        ("/jobs?size=100000", "size"),
        ("/jobs?cursor=nonsense", "cursor"),
        ("/jobs?cursor=LWlkCg", "cursor"),
        ("/jobs?cursor=%00", "cursor"),
        ("/jobs/{job_id}/metrics?from_step=-1", "from_step"),
        ("/jobs/{job_id}/metrics?from_step=99999999999999999999", "from_step"),
        ("/jobs/{job_id}/metrics?name=%00", "name"),
        ("/jobs/{job_id}/logs?after=99999999999999999999", "after"),
        ("/jobs/{job_id}/logs?rank=99999999999", "rank"),
        ("/jobs/{job_id}/events?limit=0", "limit"),
    ],
)
def test_a_bad_parameter_is_named(api: ApiServer, path: str, parameter: str) -> None:
    answer = api.http.get(path.format(job_id=api.submit()))
    assert list(fields_of(answer)) == [parameter]


def test_a_cursor_of_another_order_is_refused(api: ApiServer) -> None:
    for _ in range(2):
        api.submit()
    cursor = api.http.get("/jobs", params={"size": 1, "sort": "priority"}).json()["next_page"]
    fields = fields_of(api.http.get("/jobs", params={"size": 1, "sort": "name", "cursor": cursor}))
    assert "in the order name" in fields["cursor"]


@pytest.mark.parametrize(
    "place",
    [
        *("1, 2, 3", '"a\\u0000b", 1', "9" * 40, "null", "1.5", "true", "[" * 2000),
        *('{"at": "yesterday"}', '{"at": "2026-11-30T06:00:00"}'),
    ],
)
def test_a_cursor_that_somebody_made_up_is_refused(api: ApiServer, place: str) -> None:
    cursor = urlsafe_b64encode(f'{{"order": "-id", "backwards": false, "place": [{place}]}}'.encode()).decode()
    assert "cursor" in fields_of(api.http.get("/jobs", params={"cursor": cursor}))


def test_a_model_that_no_host_knows_is_refused_with_the_nearest(api: ApiServer) -> None:
    with api.database.session_scope() as session:
        hosts.register(session, "alpha", worker="1:1", run_root="/tmp/runs", devices=[])
        recipe = {"name": "classification", "models": ["resnet18", "resnet50"]}
        hosts.set_catalog(session, "alpha", {"recipes": [recipe], "data": [{"name": "digits"}]})
    try:
        fields = fields_of(api.post("/jobs", {"device": "cpu", "train": TRAIN | {"model": "resnet19"}}))
    finally:
        with api.database.session_scope() as session:
            session.execute(delete(Host))  # the other tests' jobs name any model
    assert "resnet18" in fields["train.model"]


def test_a_database_that_is_away_is_answered_with_503_and_its_return_with_200(
    postgresql_url: str, postgres: PostgresServer, tmp_path: Path
) -> None:
    with ApiServer(postgresql_url, tmp_path) as api:
        job_id = api.submit()
        postgres.stop()
        answers = [
            api.http.get(f"/jobs/{job_id}"),
            api.post("/jobs", {"device": "cpu", "train": TRAIN}),
            api.http.get("/readyz"),
        ]
        alive = api.http.get("/healthz")
        postgres.start()
        back = api.http.get(f"/jobs/{job_id}")
    for answer in answers:
        assert problem_of(answer, 503)["detail"] == "the database does not answer; try again later"
    assert alive.status_code == 200
    assert back.status_code == 200
