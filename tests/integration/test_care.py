"""Care for placements whose processes cannot be killed: their devices are taken away, and nobody gets them."""

import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from jobs.database import Database
from jobs.settings import Settings
from jobs.store import attempts
from jobs.tables import DeviceRow, Placement
from tests.integration.store.conftest import Service
from tests.waiting import wait_until
from trainer.process_identity import identity
from worker import care
from worker.care import Care
from worker.fitness import Fitness

DEAD = f"{2**22 + 1}:1@{identity(os.getpid()).partition('@')[2]}"
"""Identity of a supervisor on this machine that no longer runs: no pid is so high."""


@pytest.fixture
def service(postgresql_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """A service whose kernel does not let the processes of any run die, as where a driver hangs in it."""
    monkeypatch.setattr(care, "end_run", lambda _run_dir, timeout_s: False)  # noqa: ARG005  (named by its caller)
    service = Service(Database(postgresql_url))
    service.register(worker=identity(os.getpid()))
    yield service
    service.database.dispose()


def settings(folder: Path) -> Settings:
    return Settings(host_name="alpha", run_root=folder, unkillable_s=0.2)


def quarantined(service: Service) -> dict[str, str | None]:
    with service.database.session_scope(read_only=True) as session:
        rows = session.scalars(select(DeviceRow).where(DeviceRow.quarantined_at.is_not(None)))
        return {row.name: row.quarantine_reason for row in rows}


def claimed_by_a_dead_supervisor(service: Service, folder: Path) -> Placement:
    placement = service.claim(service.launch("0"), DEAD)
    with service.database.session_scope() as session:
        attempts.get_placement(session, placement.id).run_dir = str(folder)
    return placement


def test_a_placement_with_a_process_that_cannot_be_killed_keeps_its_devices_until_they_are_taken_away(
    service: Service, tmp_path: Path
) -> None:
    placement = claimed_by_a_dead_supervisor(service, tmp_path)
    caring = Care(service.database, settings(tmp_path), Fitness(tmp_path))

    caring.round()
    assert service.live_leases() == [("cuda:0", placement.job_id, 1)]
    assert quarantined(service) == {}

    def is_over() -> bool:
        caring.round()
        return service.live_leases() == []

    wait_until(is_over, timeout_s=10, what="the placement to end")
    assert quarantined(service) == {
        "cuda:0": f"a process of job {placement.job_id}, attempt 1 cannot be killed; it may need a reboot"
    }
    assert service.state(placement.job_id) == "queued"
    assert [each.devices for each in service.plan()] == []


def test_a_placement_that_its_worker_gave_up_and_ends_later_says_why_it_gave_it_up(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(_care: Care, _placement: Placement) -> "subprocess.Popen[bytes]":
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(Care, "_start_supervisor", start)
    placement = service.launch("0")
    caring = Care(service.database, settings(tmp_path), Fitness(tmp_path))

    def is_over() -> bool:
        caring.round()
        return service.live_leases() == []

    wait_until(is_over, timeout_s=10, what="the placement to end")
    failure = service.job(placement.job_id).failure
    assert failure is not None
    assert failure["message"] == "its supervisor could not be started: [Errno 11] Resource temporarily unavailable"


def test_a_worker_that_lost_its_name_in_mid_sweep_starts_nothing_for_the_host_any_more(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[int] = []

    def start(_care: Care, placement: Placement) -> "subprocess.Popen[bytes]":
        started.append(placement.id)
        return subprocess.Popen(["true"])  # a supervisor would look for its placement in the default database

    monkeypatch.setattr(Care, "_start_supervisor", start)
    service.fall_silent("alpha")
    service.register(worker="2:2@boot")
    service.launch("0")

    Care(service.database, settings(tmp_path), Fitness(tmp_path)).round()

    assert started == []


def test_a_run_that_could_not_be_killed_keeps_later_rounds_from_others_for_one_look_only(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claimed_by_a_dead_supervisor(service, tmp_path)
    waited: list[float] = []

    def will_not_die(_run_dir: str, *, timeout_s: float) -> bool:
        waited.append(timeout_s)
        return False

    monkeypatch.setattr(care, "end_run", will_not_die)
    caring = Care(service.database, settings(tmp_path), Fitness(tmp_path))

    for _ in range(3):
        caring.round()

    assert waited == [care.DIE_S, 0, 0]


def test_a_worker_does_not_end_itself_for_a_placement_that_it_gave_up_and_could_not_end_before_its_lease(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    signalled: list[str] = []
    monkeypatch.setattr(care, "signal_process", lambda whom, _number: signalled.append(whom))
    placement = service.claim(service.launch("0"), identity(os.getpid()))

    assert Care(service.database, settings(tmp_path), Fitness(tmp_path)).end_expired({placement.id}) == {placement.id}

    assert signalled == []
