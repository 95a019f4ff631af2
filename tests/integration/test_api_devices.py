"""One host and its devices over HTTP: shown one by one, and taken out of use until they are released."""

from typing import Any

import pytest

from jobs.planning import plan_once
from jobs.store import hosts
from jobs.store.hosts import DeviceInfo
from tests.api_server import ApiServer
from tests.integration.running_job import start_job
from tests.integration.test_api_errors import fields_of, problem_of


@pytest.fixture
def gamma(api: ApiServer) -> str:
    """A host with two devices."""
    devices = [DeviceInfo(f"cuda:{index}", "cuda", model="simulated", simulated=True) for index in range(2)]
    with api.database.session_scope() as session:
        hosts.register(session, "gamma", worker="1:1", run_root="/runs", devices=devices)
    return "gamma"


def device(api: ApiServer, host: str, name: str) -> dict[str, Any]:
    answer = api.http.get(f"/hosts/{host}/devices/{name}")
    assert answer.status_code == 200, answer.text
    shown = answer.json()
    assert isinstance(shown, dict)
    return shown


def test_a_host_is_shown_by_its_name_as_in_the_list(api: ApiServer, gamma: str) -> None:
    shown = api.http.get(f"/hosts/{gamma}").json()
    assert shown in api.http.get("/hosts").json()["items"]
    assert [each["name"] for each in shown["devices"]] == ["cuda:0", "cuda:1"]
    assert "no host 'delta'" in problem_of(api.http.get("/hosts/delta"), 404)["detail"]


def test_a_device_is_shown_with_who_holds_it(api: ApiServer, gamma: str) -> None:
    assert device(api, gamma, "cuda:1")["held_by"] is None
    run = start_job(api.database, api.submit(device="0,1"))
    held = device(api, run.placement.host_name, "cuda:1")
    assert held["held_by"] == {"job_id": run.job_id, "attempt": 1}
    problem_of(api.http.get(f"/hosts/{gamma}/devices/cuda:2"), 404)
    problem_of(api.http.get("/hosts/delta/devices/cuda:0"), 404)


def test_a_device_in_quarantine_is_handed_out_no_more_until_it_is_released(api: ApiServer, gamma: str) -> None:
    path = f"/hosts/{gamma}/devices/cuda:0"
    answer = api.post(f"{path}/quarantine", {"reason": "its fan"})
    assert answer.status_code == 200, answer.text
    shown = device(api, gamma, "cuda:0")
    assert (shown["quarantine_reason"], shown["quarantined_at"] is None) == ("its fan", False)
    since = shown["quarantined_at"]
    api.post(f"{path}/quarantine", {"reason": "its other fan"})
    shown = device(api, gamma, "cuda:0")
    assert (shown["quarantine_reason"], shown["quarantined_at"]) == ("its other fan", since)
    job_id = api.submit(device="0", host=gamma)
    with api.database.session_scope() as session:
        assert job_id not in [launch.job_id for launch in plan_once(session)]
    assert "quarantine" in api.http.get(f"/jobs/{job_id}").json()["reason"]
    assert api.http.post(f"{path}/release").status_code == 200
    with api.database.session_scope() as session:
        assert job_id in [launch.job_id for launch in plan_once(session)]


def test_a_quarantine_without_a_reason_or_of_no_device_is_refused(api: ApiServer, gamma: str) -> None:
    for body in ({}, {"reason": ""}, {"reason": "a\0b"}):
        assert "reason" in fields_of(api.post(f"/hosts/{gamma}/devices/cuda:0/quarantine", body))
    problem_of(api.post(f"/hosts/{gamma}/devices/cuda:7/quarantine", {"reason": "x"}), 404)
    problem_of(api.post("/hosts/delta/devices/cuda:0/quarantine", {"reason": "x"}), 404)
