"""What GPUs did, read back over HTTP."""

from datetime import UTC, datetime, timedelta

import pytest

from jobs.database import now
from jobs.store import hosts, telemetry
from jobs.store.hosts import DeviceInfo
from jobs.store.telemetry import Stretch
from tests.api_server import ApiServer
from tests.integration.running_job import start_job
from tests.integration.test_api_errors import fields_of

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def test_a_host_s_figures_come_by_time_in_pages(api: ApiServer) -> None:
    gpus = [DeviceInfo("cuda:0", "cuda", uuid="GPU-of-gamma", model="H200")]
    with api.database.session_scope() as session:
        hosts.register(session, "gamma", worker="1:1", run_root="/runs", devices=gpus)
        minutes = [Stretch("GPU-of-gamma", AT + timedelta(minutes=n), 6, 10.0 * n, n, None, 500.0) for n in range(5)]
        telemetry.add(session, "gamma", minutes)

    window: dict[str, str | int] = {"from": "2026-03-01T12:01:00Z", "to": "2026-03-01T13:04:00+01:00", "size": 2}
    first = api.http.get("/hosts/gamma/telemetry", params=window).json()
    second = api.http.get("/hosts/gamma/telemetry", params=window | {"cursor": first["next_page"]}).json()

    assert first["items"][0] == {
        "host": "gamma",
        "device": "cuda:0",
        "uuid": "GPU-of-gamma",
        "at": "2026-03-01T12:01:00Z",
        "samples": 6,
        "utilisation": 10.0,
        "memory_bytes": 1,
        "temperature_c": None,
        "power_w": 500.0,
    }
    assert [each["at"] for each in (*first["items"], *second["items"])] == [
        f"2026-03-01T12:0{minute}:00Z" for minute in (1, 2, 3)
    ]
    assert second["next_page"] is None


def test_figures_of_a_host_or_job_that_is_not_there_are_404_and_a_time_without_zone_is_422(api: ApiServer) -> None:
    assert api.http.get("/hosts/nowhere/telemetry").status_code == 404
    assert api.http.get("/jobs/999999/telemetry").status_code == 404
    naive = api.http.get("/jobs/1/telemetry", params={"from": "2026-03-01T12:00:00"})
    assert naive.status_code == 422
    assert "from" in naive.text


@pytest.mark.parametrize("path", ["/jobs/1/telemetry", "/hosts/alpha/telemetry"])
@pytest.mark.parametrize(("name", "time"), [("from", "0001-01-01T00:00:00+14:00"), ("to", "9999-12-31T23:59:59-14:00")])
def test_a_time_that_is_none_in_another_zone_is_422(api: ApiServer, path: str, name: str, time: str) -> None:
    assert list(fields_of(api.http.get(path, params={name: time}))) == [name]


def test_a_job_has_the_figures_of_its_own_devices(api: ApiServer) -> None:
    run = start_job(api.database, api.submit(device="0,1"))
    host_name = run.placement.host_name
    gpus = [DeviceInfo(f"cuda:{index}", "cuda", uuid=f"GPU-{host_name}-{index}") for index in (7, 8)]
    with api.database.session_scope() as session:
        # Others than it holds: those of the simulated ones have no driver to ask.
        hosts.register(session, host_name, worker="1:1", run_root="/runs", devices=gpus)
        telemetry.add(session, host_name, [Stretch(gpu.uuid or "", now(session), 1) for gpu in gpus])

    answer = api.http.get(f"/jobs/{run.job_id}/telemetry")

    assert (answer.status_code, answer.json()["items"]) == (200, [])
