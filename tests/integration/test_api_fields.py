"""Which part of what there is: sparse fields, filters and orders, and parameters that a route does not take."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.routing import APIRoute, iter_route_contexts

from api.app import create_app
from jobs.states import Outcome
from tests.api_server import ApiServer
from tests.integration.running_job import RunningJob, saved, start_job

SPARSE = "application/vnd.rankzero.sparse+json"
ROUTES = sorted(
    (method, str(route.path))
    for route in iter_route_contexts(create_app().routes)
    if isinstance(route.original_route, APIRoute)
    for method in route.methods or ()
)


@pytest.fixture(scope="module")
def run(api: ApiServer) -> Iterator[RunningJob]:
    """A job that runs on a host of its own, with two checkpoints."""
    run = start_job(api.database, api.submit(device="0,1", priority=7))
    for step in (1, 2):
        run.add(checkpoint=saved(f"/runs/{step}.pt", step=step))
    yield run
    run.end(Outcome.SUCCEEDED)


def get(api: ApiServer, path: str, **params: Any) -> Any:
    answer = api.http.get(path, params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/jobs", ["id", "name", "world_size"]),
        ("/jobs/{job_id}/attempts", ["number", "placements"]),
        ("/jobs/{job_id}/events", ["id", "kind"]),
        ("/jobs/{job_id}/checkpoints", ["step"]),
        ("/hosts", ["name", "devices"]),
    ],
)
def test_items_of_a_list_have_the_fields_that_were_asked_for(
    api: ApiServer, run: RunningJob, path: str, fields: list[str]
) -> None:
    path = path.format(job_id=run.job_id)
    whole = get(api, path)
    answer = api.http.get(path, params={"fields": ",".join(fields)})

    assert answer.headers["Content-Type"] == SPARSE
    sparse = answer.json()
    assert sparse.pop("items") == [{field: item[field] for field in fields} for item in whole.pop("items")]
    assert sparse == whole


def test_one_job_has_the_fields_that_were_asked_for(api: ApiServer, run: RunningJob) -> None:
    whole = get(api, f"/jobs/{run.job_id}")
    assert get(api, f"/jobs/{run.job_id}", fields="state,created_at") == {
        "state": "running",
        "created_at": whole["created_at"],
    }


@pytest.mark.parametrize("fields", ["", "id,", "nam", "id,name,spec.train", "id name"])
def test_a_field_that_is_none_is_refused_with_those_there_are(api: ApiServer, fields: str) -> None:
    (error,) = api.http.get("/jobs", params={"fields": fields}).json()["errors"]
    assert error["field"] == "fields"
    assert "id, name, state" in error["message"]


def test_jobs_are_found_by_time_priority_training_and_host(api: ApiServer, run: RunningJob) -> None:
    over = api.submit(priority=7, train={"model": "resnet50", "data": "digits"})
    api.http.post(f"/jobs/{over}/cancel")
    times = get(api, f"/jobs/{over}")

    def found(**params: Any) -> list[int]:
        return [job["id"] for job in get(api, "/jobs", priority=7, sort="id", **params)["items"]]

    assert found() == [run.job_id, over]
    assert found(model="resnet50") == [over]
    assert found(recipe="classification") == [run.job_id, over]
    assert found(recipe="detection") == []
    assert found(host=run.placement.host_name) == [run.job_id]
    assert found(created_after=times["created_at"]) == [over]
    assert found(created_before=times["created_at"]) == [run.job_id]
    assert found(finished_after=times["finished_at"]) == [over]
    assert found(finished_after="2100-01-01T00:00:00Z") == []


def test_events_are_narrowed_to_kinds_and_read_from_the_newest_on(api: ApiServer, run: RunningJob) -> None:
    path = f"/jobs/{run.job_id}/events"
    everything = get(api, path)["items"]
    assert [event["to_state"] for event in get(api, path, kind="state")["items"]] == ["starting", "running"]

    newest = get(api, path, sort="-id", limit=2)
    older = get(api, path, sort="-id", before=newest["items"][-1]["id"])
    assert newest["items"] + older["items"] == everything[::-1]
    assert newest["after"] == everything[-1]["id"]


def test_checkpoints_and_hosts_are_listed_in_either_order(api: ApiServer, run: RunningJob) -> None:
    path = f"/jobs/{run.job_id}/checkpoints"
    assert [item["step"] for item in get(api, path, sort="-id")["items"]] == [2, 1]
    cursor = get(api, path, sort="-id", size=1)["next_page"]
    assert [item["step"] for item in get(api, path, sort="-id", size=1, cursor=cursor)["items"]] == [1]
    assert get(api, "/hosts", sort="-name")["items"] == get(api, "/hosts")["items"][::-1]


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_a_parameter_that_a_route_does_not_take_is_refused(api: ApiServer, method: str, path: str) -> None:
    answer = api.http.request(method, re.sub(r"\{[^}]*\}", "1", path), params={"colour": "red"})

    assert answer.status_code == 422, answer.text
    assert [each["field"] for each in answer.json()["errors"]] == ["colour"]
