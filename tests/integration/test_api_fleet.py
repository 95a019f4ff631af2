"""Hosts, quotas, and plans of jobs that are not submitted, over HTTP."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import delete, update

from jobs.database import now
from jobs.planning import plan_once
from jobs.states import Outcome
from jobs.store import hosts
from jobs.store.hosts import DeviceInfo
from jobs.tables import DeviceRow, Host, Quota
from tests.api_server import TRAIN, ApiServer
from tests.integration.running_job import RunningJob, start_job
from tests.integration.test_api_errors import fields_of, problem_of


@pytest.fixture
def alpha(api: ApiServer) -> Iterator[str]:
    """A host with two devices on which nothing runs, the only one that is open; gone after the test."""
    devices = [DeviceInfo(f"cuda:{index}", "cuda", model="simulated", simulated=True) for index in range(2)]
    with api.database.session_scope() as session:
        session.execute(update(Host).values(drained_at=now(session)))
        hosts.register(session, "alpha", worker="1:1", run_root="/runs", devices=devices)
        session.execute(update(Host).where(Host.name == "alpha").values(drained_at=None, heartbeat_at=now(session)))
    yield "alpha"
    with api.database.session_scope() as session:
        session.execute(update(Host).where(Host.name == "alpha").values(drained_at=now(session)))
        session.execute(delete(Quota))


@pytest.fixture
def run(api: ApiServer) -> Iterator[RunningJob]:
    """A job of ada's that runs on both devices of a host of its own, until the test is over."""
    run = start_job(api.database, api.submit(device="0,1", user="ada", labels={"team": "a/b"}))
    yield run
    run.end(Outcome.SUCCEEDED)


def shown_host(api: ApiServer, name: str) -> dict[str, Any]:
    (host,) = [each for each in api.http.get("/hosts").json()["items"] if each["name"] == name]
    assert isinstance(host, dict)
    return host


def foresee(api: ApiServer, **fields: Any) -> dict[str, Any]:
    answer = api.post("/jobs/plan", {"device": "0", "train": TRAIN} | fields)
    assert answer.status_code == 200, answer.text
    plan = answer.json()
    assert isinstance(plan, dict)
    return plan


def test_a_host_is_drained_with_a_note_and_taken_back(api: ApiServer, run: RunningJob) -> None:
    name = run.placement.host_name
    drained = api.post(f"/hosts/{name}/drain", {"note": "new fan"}).json()
    shown = shown_host(api, name)
    taken_back = api.http.post(f"/hosts/{name}/undrain").json()

    assert (drained["closed"], drained["drain_note"]) == ("drained: new fan", "new fan")
    assert drained["drained_at"] is not None
    assert drained["running"] == [{"job_id": run.job_id, "attempt": 1}]
    assert shown == drained
    assert (taken_back["closed"], taken_back["drained_at"], taken_back["drain_note"]) == (None, None, None)


def test_a_drain_needs_no_body_and_with_eviction_its_runs_are_told_to_stop(api: ApiServer, run: RunningJob) -> None:
    path = f"/hosts/{run.placement.host_name}/drain"
    assert api.http.post(path).status_code == 200
    before = api.http.get(f"/jobs/{run.job_id}/events").json()["after"]
    assert api.post(path, {"evict": True}).status_code == 200

    events = api.http.get(f"/jobs/{run.job_id}/events", params={"after": before}).json()["items"]
    assert [event["detail"]["message"] for event in events] == [f"host {run.placement.host_name} is drained"]
    assert api.http.get(f"/jobs/{run.job_id}").json()["state"] == "running"


def test_a_quarantined_device_is_shown_with_its_reason_until_it_is_released(api: ApiServer, alpha: str) -> None:
    with api.database.session_scope() as session:
        sick = update(DeviceRow).where(DeviceRow.host_name == alpha, DeviceRow.name == "cuda:1")
        session.execute(sick.values(quarantined_at=now(session), quarantine_reason="three losses", losses=3))
    _, device = shown_host(api, alpha)["devices"]
    released = api.http.post(f"/hosts/{alpha}/devices/cuda:1/release").json()["devices"][1]

    assert (device["quarantine_reason"], device["losses"]) == ("three losses", 3)
    assert device["quarantined_at"] is not None
    assert (released["quarantine_reason"], released["losses"], released["quarantined_at"]) == (None, 0, None)


def test_hosts_and_devices_that_are_not_there_are_named(api: ApiServer, alpha: str) -> None:
    assert "no host 'nowhere'" in problem_of(api.http.post("/hosts/nowhere/drain"), 404)["detail"]
    assert "no host 'nowhere'" in problem_of(api.http.post("/hosts/nowhere/undrain"), 404)["detail"]
    assert "'cuda:7'" in problem_of(api.http.post(f"/hosts/{alpha}/devices/cuda:7/release"), 404)["detail"]
    assert fields_of(api.post(f"/hosts/{alpha}/drain", {"evicted": True})).keys() == {"evicted"}


@pytest.mark.usefixtures("run")
def test_a_quota_is_set_replaced_shown_with_its_use_and_removed(api: ApiServer) -> None:
    path = "/quotas/label/team=a/b"
    assert api.http.put(path, json={"max_devices": 1}).json()["max_devices"] == 1
    quota = api.http.put(path, json={"max_devices": 8, "share": 2}).json()
    listed = api.http.get("/quotas").json()
    removed = api.http.delete(path)

    assert (quota["subject"], quota["max_devices"], quota["share"]) == ("team=a/b", 8, 2)
    assert quota["use"]["held_devices"] == 2
    assert [item["subject"] for item in listed["items"]] == ["team=a/b"]
    (ada,) = [each for each in listed["users"] if each["user"] == "ada"]
    assert ada["held_devices"] == 2
    assert ada["recent_device_s"] > 0
    assert removed.status_code == 204
    assert problem_of(api.http.delete(path), 404)["detail"] == "no quota of label 'team=a/b'"


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("user/ada", {"max_devices": -1}, "max_devices"),
        ("user/ada", {"max_devices": 1.5}, "max_devices"),
        ("user/ada", {"share": 0}, "share"),
        ("user/ada", {"most": 1}, "most"),
        ("user/", {}, "subject"),
        ("label/team", {}, "subject"),
        ("label/=a", {}, "subject"),
        ("group/a", {}, "kind"),
    ],
)
def test_a_quota_that_makes_no_sense_names_what_is_wrong(
    api: ApiServer, path: str, body: dict[str, Any], field: str
) -> None:
    assert fields_of(api.http.put(f"/quotas/{path}", json=body)).keys() == {field}


def test_a_job_that_could_start_is_told_where_and_is_not_stored(api: ApiServer, alpha: str) -> None:
    newest = api.http.get("/jobs").json()["items"][:1]
    plan = foresee(api, device="1,0", host=alpha, train=TRAIN | {"batch": 64})

    assert plan["starts_now"]
    assert plan["placements"] == [{"node_rank": 0, "host": alpha, "devices": ["cuda:1", "cuda:0"]}]
    assert (plan["position"], plan["reason"], plan["waits_for"], plan["warnings"]) == (1, None, [], [])
    assert (plan["world_size"], plan["batch_per_rank"]) == (2, 32)
    assert plan["predicted_start"] is not None
    assert plan["hosts"] == [{"host": alpha, "closed": None, "devices": 2, "free": ["cuda:1", "cuda:0"]}]
    assert api.http.get("/jobs").json()["items"][:1] == newest


def test_a_job_that_would_wait_is_told_for_whom_and_behind_how_many(api: ApiServer, run: RunningJob) -> None:
    name = run.placement.host_name
    api.submit(device="0", host=name)
    plan = foresee(api, device="0", host=name, priority=0)
    first = foresee(api, device="0", host=name, priority=100)

    assert not plan["starts_now"]
    assert plan["placements"] == []
    assert plan["waits_for"][0]["host"] == name
    assert plan["position"] > first["position"]
    assert first["waits_for"] == [{"host": name, "device": "cuda:0", "job_id": run.job_id}]
    assert f"cuda:0 (job {run.job_id})" in first["reason"]
    assert plan["hosts"] == [{"host": name, "closed": None, "devices": 1, "free": []}]


def test_a_host_is_removed_once_its_worker_reports_no_more(api: ApiServer, alpha: str) -> None:
    refused = problem_of(api.http.delete(f"/hosts/{alpha}"), 409)
    with api.database.session_scope() as session:
        session.execute(update(Host).where(Host.name == alpha).values(heartbeat_at=now(session) - timedelta(hours=1)))
    removed = api.http.delete(f"/hosts/{alpha}").status_code

    assert "drain the host instead" in refused["detail"]
    assert removed == 204
    assert alpha not in [each["name"] for each in api.http.get("/hosts").json()["items"]]
    problem_of(api.http.delete(f"/hosts/{alpha}"), 404)


def test_a_job_that_no_host_could_ever_run_is_told_so(api: ApiServer, alpha: str) -> None:
    plan = foresee(api, device="0,1,7", host=alpha, train=TRAIN | {"batch": 96})

    assert not plan["starts_now"]
    assert plan["hosts"] == []
    assert "no registered host has" in plan["reason"]
    assert len(plan["warnings"]) == 1


def test_a_plan_refuses_what_a_submission_refuses(api: ApiServer) -> None:
    bad = {"device": "0,1,2", "train": TRAIN | {"batch": 10}}

    planned, submitted = (problem_of(api.post(path, bad), 422) for path in ("/jobs/plan", "/jobs"))
    assert planned | {"request_id": None} == submitted | {"request_id": None}
    lost = {"train": TRAIN, "start_from": {"job": 2**40}}
    assert fields_of(api.post("/jobs/plan", lost)).keys() == {"start_from.job"}


def test_a_waiting_job_shows_its_place_in_the_line_and_what_is_in_its_way(api: ApiServer, run: RunningJob) -> None:
    name = run.placement.host_name
    job_id = api.submit(device="0", host=name, priority=100, labels={"of": name})
    unplanned = api.http.get(f"/jobs/{job_id}").json()
    with api.database.session_scope() as session:
        plan_once(session)
    shown = api.http.get(f"/jobs/{job_id}").json()
    (listed,) = api.http.get("/jobs", params={"label": f"of={name}"}).json()["items"]

    assert (unplanned["position"], unplanned["waits_for"]) == (None, [])
    assert shown["position"] == 1
    assert shown["waits_for"] == [{"host": name, "device": "cuda:0", "job_id": run.job_id}]
    assert shown["predicted_start"] is None
    assert listed == shown
    api.http.post(f"/jobs/{job_id}/cancel")
    gone = api.http.get(f"/jobs/{job_id}").json()
    assert (gone["position"], gone["waits_for"], gone["reason"]) == (None, [], None)
