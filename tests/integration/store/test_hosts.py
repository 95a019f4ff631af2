"""Hosts: one worker for each name, and devices that stay themselves whatever number they go by."""

import pytest

from jobs.errors import HostNameTakenError
from jobs.states import Outcome
from jobs.store import attempts, hosts
from jobs.store.hosts import DeviceInfo
from jobs.tables import DeviceRow, Host, Placement
from tests.integration.store.conftest import WORKER, Service

OTHER = "2:2@boot"


def register(service: Service, *devices: DeviceInfo, worker: str = WORKER, replaces: str | None = None) -> None:
    with service.database.session_scope() as session:
        hosts.register(session, "alpha", worker=worker, run_root="/runs", devices=devices, replaces=replaces)


def gpu(index: int, uuid: str) -> DeviceInfo:
    return DeviceInfo(f"cuda:{index}", "cuda", uuid=uuid, model="H200")


def host(service: Service) -> Host:
    with service.database.session_scope(read_only=True) as session:
        return session.get_one(Host, "alpha")


def devices_of(service: Service, placement: Placement) -> list[tuple[str, str | None]]:
    """Name and UUID of each device that a placement has."""
    with service.database.session_scope(read_only=True) as session:
        return [(row.name, row.uuid) for row in attempts.device_rows(session, placement)]


def present(service: Service) -> list[tuple[int, str, str | None]]:
    with service.database.session_scope(read_only=True) as session:
        return [(row.id, row.name, row.uuid) for row, *_ in hosts.devices(session) if row.kind == "cuda"]


def test_a_second_worker_under_the_name_of_one_that_is_alive_is_refused_and_changes_nothing(service: Service) -> None:
    before = service.everything()

    with pytest.raises(HostNameTakenError, match=f"{WORKER}.*name this one otherwise"):
        register(service, worker=OTHER)

    assert service.everything() == before


def test_a_worker_that_was_not_heard_of_for_long_is_replaced(service: Service) -> None:
    service.fall_silent("alpha")

    register(service, worker=OTHER)

    assert host(service).worker == OTHER


def test_a_worker_that_is_known_to_be_dead_is_replaced_at_once(service: Service) -> None:
    register(service, worker=OTHER, replaces=WORKER)

    assert host(service).worker == OTHER


def test_only_the_worker_that_is_known_to_be_dead_is_replaced(service: Service) -> None:
    register(service, worker="3:3@boot", replaces=WORKER)

    with pytest.raises(HostNameTakenError):
        register(service, worker=OTHER, replaces=WORKER)

    assert host(service).worker == "3:3@boot"


def test_a_worker_that_lost_its_name_learns_it_with_its_next_beat(service: Service) -> None:
    service.fall_silent("alpha")
    register(service, worker=OTHER)
    before = service.everything()

    with pytest.raises(HostNameTakenError, match="another worker"), service.database.session_scope() as session:
        hosts.beat(session, "alpha", worker=WORKER)

    assert service.everything() == before
    with service.database.session_scope() as session:
        hosts.beat(session, "alpha", worker=OTHER)


def test_a_gpu_that_its_worker_numbers_otherwise_keeps_its_row_and_its_live_lease(service: Service) -> None:
    register(service, gpu(0, "GPU-a"), gpu(1, "GPU-b"))
    (row_a, _, _), (row_b, _, _) = present(service)
    running = service.run("0")

    register(service, gpu(0, "GPU-b"), gpu(1, "GPU-a"))

    assert sorted(present(service)) == [(row_a, "cuda:1", "GPU-a"), (row_b, "cuda:0", "GPU-b")]
    assert devices_of(service, running) == [("cuda:1", "GPU-a")]
    assert service.live_leases() == [("cuda:1", running.job_id, 1)]


def test_a_job_on_the_other_number_gets_the_other_gpu_while_the_first_is_held(service: Service) -> None:
    register(service, gpu(0, "GPU-a"), gpu(1, "GPU-b"))
    running = service.run("0")
    register(service, gpu(0, "GPU-b"), gpu(1, "GPU-a"))

    waiting = service.submit("1")
    placement = service.launch("0")

    assert devices_of(service, placement) == [("cuda:0", "GPU-b")]
    reason = service.job(waiting).reason
    assert reason is not None
    assert reason.startswith(f"waits for cuda:1 (job {running.job_id}) on alpha")
    service.end(running, Outcome.SUCCEEDED)
    (placement,) = service.plan()
    assert placement.job_id == waiting
    assert devices_of(service, placement) == [("cuda:1", "GPU-a")]


def test_a_gpu_in_the_place_of_another_is_another_device(service: Service) -> None:
    register(service, gpu(0, "GPU-a"))
    running = service.run("0")

    register(service, gpu(0, "GPU-new"))
    placement = service.launch("0")

    assert devices_of(service, placement) == [("cuda:0", "GPU-new")]
    assert devices_of(service, running) == [("cuda:0", "GPU-a")]


def test_a_gpu_that_was_away_comes_back_to_its_row(service: Service) -> None:
    register(service, gpu(0, "GPU-a"), gpu(1, "GPU-b"))
    before = present(service)

    register(service, gpu(0, "GPU-b"))
    register(service, gpu(0, "GPU-a"), gpu(1, "GPU-b"))

    assert sorted(present(service)) == sorted(before)


def test_two_present_devices_of_a_host_never_share_a_name(service: Service) -> None:
    register(service, gpu(0, "GPU-a"), gpu(1, "GPU-b"), gpu(2, "GPU-c"))
    register(service, gpu(0, "GPU-c"), gpu(1, "GPU-a"), gpu(2, "GPU-b"))
    register(service, gpu(0, "GPU-b"))
    register(service, gpu(0, "GPU-new"), gpu(1, "GPU-b"))

    assert [(name, uuid) for _, name, uuid in sorted(present(service), key=lambda row: row[1])] == [
        ("cuda:0", "GPU-new"),
        ("cuda:1", "GPU-b"),
    ]
    with service.database.session_scope(read_only=True) as session:
        assert session.query(DeviceRow).where(DeviceRow.uuid == "GPU-b").count() == 1
