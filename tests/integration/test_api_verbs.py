"""Pausing, resuming, retrying, changing and cloning a job over HTTP."""

from typing import Any

import pytest

from jobs.states import Outcome
from tests.api_server import TRAIN, ApiServer
from tests.integration.running_job import start_job
from tests.integration.test_api_errors import fields_of, problem_of

FAILURE = {"cause": "hang", "message": "rank 1 made no progress", "rank": 1, "traceback": "stack", "log_tail": "last"}


def failed(api: ApiServer) -> int:
    run = start_job(api.database, api.submit(device="0,1", max_retries=0))
    run.end(Outcome.FAILED, failure=FAILURE)
    return run.job_id


def test_a_waiting_job_is_paused_resumed_and_shown_with_what_its_user_wants(api: ApiServer) -> None:
    job_id = api.submit(user="ann")
    paused = api.http.post(f"/jobs/{job_id}/pause").json()
    again = api.http.post(f"/jobs/{job_id}/pause").json()
    resumed = api.http.post(f"/jobs/{job_id}/resume").json()

    assert (paused["state"], paused["intent"], paused["user"]) == ("paused", "pause", "ann")
    assert again == paused
    assert (resumed["state"], resumed["intent"]) == ("queued", "run")


def test_a_failed_job_tells_its_last_lines_and_is_retried(api: ApiServer) -> None:
    job_id = failed(api)
    failure = api.http.get(f"/jobs/{job_id}").json()["failure"]
    assert (failure["log_tail"], failure["traceback"]) == ("last", "stack")

    job = api.http.post(f"/jobs/{job_id}/retry").json()

    assert (job["state"], job["retries"], job["finished_at"]) == ("queued", 0, None)
    assert "waits in the line already" in problem_of(api.http.post(f"/jobs/{job_id}/retry"), 409)["detail"]


def test_a_verb_that_the_state_does_not_allow_is_answered_with_409_and_the_way_out(api: ApiServer) -> None:
    job_id = api.submit()
    api.http.post(f"/jobs/{job_id}/cancel")
    for verb in ("pause", "resume", "retry"):
        problem = problem_of(api.http.post(f"/jobs/{job_id}/{verb}"), 409)
        assert problem["detail"] == f"job {job_id} was cancelled, which is final; clone it to run it again"


def test_priority_and_labels_are_changed_and_told_as_an_event(api: ApiServer) -> None:
    job_id = api.submit(labels={"a": "1"})
    job = api.http.patch(f"/jobs/{job_id}", json={"priority": 0, "labels": {"team": "🚀", "a": None}}).json()

    assert (job["priority"], job["labels"]) == (0, {"team": "🚀"})
    event = api.http.get(f"/jobs/{job_id}/events").json()["items"][-1]
    assert (event["kind"], event["detail"]["priority"]) == ("change", {"from": 50, "to": 0})


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"priority": None}, "priority", "leave it out"),
        ({"labels": None}, "labels", "dictionary"),
        ({"priority": 101}, "priority", "less than or equal to 100"),
        ({"priority": "70"}, "priority", "integer"),
        ({"priority": True}, "priority", "integer"),
        ({"state": "succeeded"}, "state", "there is no such field"),
        ({"labels": {"a=b": "c"}}, "labels.a=b.[key]", "match pattern"),
        ({"labels": {"a": "\x00"}}, "labels.a", "match pattern"),
    ],
)
def test_a_change_that_is_none_names_the_field(
    api: ApiServer, changes: dict[str, Any], field: str, message: str
) -> None:
    job_id = api.submit()
    fields = fields_of(api.http.patch(f"/jobs/{job_id}", json=changes))
    assert list(fields) == [field]
    assert message in fields[field]


def test_a_clone_is_a_new_job_that_is_found_by_the_one_it_came_from(api: ApiServer) -> None:
    job_id = api.submit(user="ann", name="first")
    answer = api.post(f"/jobs/{job_id}/clone", {"changes": {"device": "7", "train": {"epochs": 3}}})

    assert answer.status_code == 201
    job = answer.json()
    assert answer.headers["Location"] == f"/jobs/{job['id']}"
    assert (job["parent_id"], job["name"], job["spec"]["train"]["epochs"]) == (job_id, "first", 3)
    assert "no registered host has cuda:7" in job["warnings"][0]
    assert [each["id"] for each in _found(api, parent=job_id)] == [job["id"]]
    assert {each["id"] for each in _found(api, user="ann", name="first")} >= {job["id"], job_id}
    assert _found(api, parent=job_id, user="bob") == []


@pytest.mark.parametrize(
    ("body", "field", "message"),
    [
        ({"changes": {"train": {"lr": -1}}}, "train.lr", "greater than"),
        ({"changes": {"devise": "0"}}, "devise", "there is no such field"),
        ({"changes": {"train": None}}, "train", "Field required"),
        ({"changes": None}, "changes", "dictionary"),
        ({"change": {}}, "change", "there is no such field"),
        ({"start_from": {"mode": "resume"}}, "start_from.job", "has no checkpoint to start from"),
        ({"start_from": {"job": 999_999}}, "start_from.job", "no job 999999"),
        ({"start_from": {"mode": "both"}}, "start_from.mode", "'weights' or 'resume'"),
    ],
)
def test_a_clone_that_cannot_be_names_the_field(api: ApiServer, body: dict[str, Any], field: str, message: str) -> None:
    answer = api.post(f"/jobs/{api.submit()}/clone", body)
    fields = fields_of(answer)
    assert list(fields) == [field]
    assert message in fields[field]


def test_what_makes_a_clone_invalid_is_told_as_that_of_the_changed_spec(api: ApiServer) -> None:
    job_id = api.submit()
    problem = problem_of(api.post(f"/jobs/{job_id}/clone", {"changes": {"train": {"epochs": 0}}}), 422)
    assert problem["detail"].startswith(f"job {job_id}'s spec with these changes: train.epochs: ")


def test_changes_that_are_nested_too_deep_are_refused(api: ApiServer) -> None:
    job_id = api.submit()
    for depth in (400, 950, 100_000):
        body = '{"changes": {"train": {"options": ' + '{"a":' * depth + "1" + "}" * depth + "}}}"
        headers = {"Content-Type": "application/json"}
        problem_of(api.http.post(f"/jobs/{job_id}/clone", content=body, headers=headers), 422)


@pytest.mark.parametrize(
    ("start", "field", "message"),
    [
        ({"start_from": {}}, "start_from.job", "Field required"),
        ({"start_from": {"job": 0}}, "start_from.job", "greater than or equal to 1"),
        ({"start_from": {"job": 1}, "train": TRAIN | {"weights": "default"}}, "start_from", "train.weights names"),
        ({"start_from": {"job": 1}, "train": TRAIN | {"resume": "/a.pt"}}, "start_from", "train.resume names"),
    ],
)
def test_a_start_that_makes_no_sense_names_the_field(
    api: ApiServer, start: dict[str, Any], field: str, message: str
) -> None:
    fields = fields_of(api.post("/jobs", {"device": "cpu", "train": TRAIN} | start))
    assert list(fields) == [field]
    assert message in fields[field]


@pytest.mark.parametrize(("query", "parameter"), [("parent=0", "parent"), ("parent=x", "parent"), ("user=%00", "user")])
def test_a_filter_that_is_none_is_named(api: ApiServer, query: str, parameter: str) -> None:
    assert list(fields_of(api.http.get(f"/jobs?{query}"))) == [parameter]


def test_a_missing_job_takes_no_verb(api: ApiServer) -> None:
    for verb in ("pause", "resume", "retry", "clone"):
        assert problem_of(api.post("/jobs/999999/" + verb, {}), 404)["detail"] == "no job 999999"
    problem_of(api.http.patch("/jobs/999999", json={"priority": 1}), 404)


def _found(api: ApiServer, **params: str | int) -> list[dict[str, Any]]:
    items = api.http.get("/jobs", params=params).json()["items"]
    assert isinstance(items, list)
    return items
