"""A worker whose own CUDA_VISIBLE_DEVICES names GPUs in another order: jobs get the physical device that was meant.

The GPUs are descriptions, as the driver would give them; database, planner, API and command are the real ones.
"""

import os
import subprocess
import sys
import time
from typing import Any

from jobs.states import Outcome
from jobs.store import attempts, hosts
from jobs.store.hosts import DeviceInfo
from jobs.tables import Placement
from tests.api_server import TRAIN, ApiServer
from tests.integration.store.conftest import WORKER, Service
from worker.host import numbered, visible
from worker.preparation import Prepared, prepare

GPUS = [DeviceInfo("", "cuda", uuid=f"GPU-{index}000", driver_index=index, model="H200") for index in range(4)]


def register(api: ApiServer, *, mask: str) -> None:
    """Register the host as its worker does when it starts under this CUDA_VISIBLE_DEVICES."""
    with api.database.session_scope() as session:
        devices = numbered(visible(GPUS, mask))
        hosts.register(session, "masked", worker=WORKER, run_root="/runs", devices=devices)


def start(service: Service) -> Placement:
    """Bring the one job that waits to `running`."""
    (placement,) = service.plan()
    placement = service.claim(placement)
    with service.database.session_scope() as session:
        attempts.set_running(session, placement, resumed_step=None)
    return placement


def prepared(api: ApiServer, placement: Placement) -> Prepared:
    """What the supervisor of this placement would start its trainer with."""
    return prepare(api.database, placement, until=lambda: time.monotonic() + 60, is_stopped=lambda: False)


def numbers(devices: list[dict[str, Any]]) -> list[tuple[str, int, str]]:
    return [(device["name"], device["driver_index"], device["uuid"]) for device in devices]


def test_a_retry_gets_the_same_gpu_and_both_of_its_numbers_are_shown_with_its_uuid(api: ApiServer) -> None:
    service = Service(api.database)
    register(api, mask="3,1")
    job_id = api.submit(device=[1], train=TRAIN)

    first = start(service)
    start_of_first = prepared(api, first)
    service.end(first, Outcome.LOST)
    service.rest_is_over(job_id)
    register(api, mask="3,1")  # its worker was started again meanwhile
    second = start(service)
    start_of_second = prepared(api, second)

    assert start_of_first.environment == start_of_second.environment == {"CUDA_VISIBLE_DEVICES": "GPU-1000"}
    assert start_of_second.config.devices == ("cuda:0",)
    told = ["cuda:0 of this run is cuda:1 of host masked, GPU 1 of the driver, GPU-1000, H200"]
    assert start_of_first.devices == start_of_second.devices == told
    tried = api.http.get(f"/jobs/{job_id}/attempts").json()["items"]
    assert [numbers(each["placements"][0]["devices"]) for each in tried] == [[("cuda:1", 1, "GPU-1000")]] * 2
    (host,) = api.http.get("/hosts").json()["items"]
    assert numbers(host["devices"]) == [("cuda:0", 3, "GPU-3000"), ("cuda:1", 1, "GPU-1000")]
    assert [each["held_by"] for each in host["devices"]] == [None, {"job_id": job_id, "attempt": 2}]
    command = [sys.executable, "-m", "rankzero.cli", "show", str(job_id)]
    shown = subprocess.run(command, env=os.environ | {"RANKZERO_URL": api.url}, capture_output=True, check=True)
    assert shown.stdout.decode().count("cuda:1 (GPU 1, GPU-1000) on masked") == 2
    service.end(second, Outcome.SUCCEEDED)


def test_a_gpu_whose_worker_numbers_it_otherwise_later_stays_the_one_that_the_attempt_had(api: ApiServer) -> None:
    service = Service(api.database)
    register(api, mask="3,1")
    job_id = api.submit(device=[1], train=TRAIN)
    running = start(service)

    register(api, mask="1,3")

    assert prepared(api, running).environment == {"CUDA_VISIBLE_DEVICES": "GPU-1000"}
    (attempt,) = api.http.get(f"/jobs/{job_id}/attempts").json()["items"]
    assert numbers(attempt["placements"][0]["devices"]) == [("cuda:1", 1, "GPU-1000")]  # as it was given
    (host,) = api.http.get("/hosts").json()["items"]
    by_uuid = {each["uuid"]: (each["name"], each["driver_index"], each["held_by"]) for each in host["devices"]}
    assert by_uuid == {
        "GPU-1000": ("cuda:0", 1, {"job_id": job_id, "attempt": 1}),
        "GPU-3000": ("cuda:1", 3, None),
    }
    with api.database.session_scope(read_only=True) as session:
        (row,) = attempts.device_rows(session, running)
    assert (row.uuid, row.driver_index) == ("GPU-1000", 1)
    service.end(running, Outcome.SUCCEEDED)
