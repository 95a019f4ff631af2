"""A host that can begin no run: what its jobs lose by it, and that it takes no more of them."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.database import Database
from jobs.settings import Settings
from jobs.store import hosts
from jobs.tables import Placement
from tests.integration.store.conftest import Service
from tests.waiting import wait_until
from trainer.process_identity import identity
from worker import fitness
from worker.care import Care
from worker.fitness import Fitness
from worker.registration import Registration
from worker.storage import Storages


@pytest.fixture
def run_root(tmp_path: Path) -> Path:
    run_root = tmp_path / "runs"
    run_root.mkdir()
    return run_root


@pytest.fixture
def service(postgresql_url: str, run_root: Path) -> Iterator[Service]:
    """A service whose host `alpha` has its run root where a test can break it."""
    service = Service(Database(postgresql_url))
    service.register(worker=identity(os.getpid()))
    with service.database.session_scope() as session:
        hosts.get(session, "alpha").run_root = str(run_root)
    yield service
    service.database.dispose()


def closed(service: Service) -> str | None:
    with service.database.session_scope(read_only=True) as session:
        return hosts.get(session, "alpha").fault


def test_a_job_whose_run_directory_can_not_be_made_loses_no_retry_and_its_host_takes_no_other_until_it_can(
    service: Service, run_root: Path
) -> None:
    settings = Settings(host_name="alpha", run_root=run_root)
    fit = Fitness(run_root)
    devices = [hosts.DeviceInfo(f"cuda:{index}", "cuda") for index in range(2)]
    registration = Registration(service.database, settings, devices, Storages(service.database, settings), fit)
    registration.keep()
    placement, other = service.launch("0", max_retries=0), service.submit("1")
    run_root.rename(run_root.with_name("away"))
    run_root.touch()

    Care(service.database, settings, fit).round()

    job, (attempt,) = service.job(placement.job_id), service.attempts(placement.job_id)
    assert (job.state, job.retries, attempt.outcome) == ("queued", 0, "lost")
    assert "Not a directory" in str(job.failure)
    assert service.plan() == []
    assert service.job(other).reason == f"every host with cuda:1 is {closed(service)}"
    assert closed(service) == f"unable to write its run root {run_root}: Not a directory"

    service.rest_is_over(placement.job_id)
    registration.keep()
    assert service.plan() == []
    run_root.unlink()
    run_root.with_name("away").rename(run_root)
    registration.keep()
    assert closed(service) is None
    assert {each.job_id for each in service.plan()} == {placement.job_id, other}


def test_a_host_whose_supervisors_end_before_their_claim_costs_no_retry_and_closes_until_one_could_start(
    service: Service, run_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(_care: Care, _placement: Placement) -> "subprocess.Popen[bytes]":
        broken = subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"])
        broken.wait()
        return broken

    monkeypatch.setattr(Care, "_start_supervisor", start)
    monkeypatch.setattr(fitness, "TRIAL", ["false"])
    fit = Fitness(run_root)
    caring = Care(service.database, Settings(host_name="alpha", run_root=run_root), fit)
    job_id = service.submit("0", max_retries=0)
    for number in (1, 2):
        assert closed(service) is None
        assert [each.job_id for each in service.plan()] == [job_id]
        caring.round()  # starts it
        caring.round()  # finds it gone
        job = service.job(job_id)
        assert (job.state, job.retries, job.attempt) == ("queued", 0, number)
        service.rest_is_over(job_id)

    assert str(closed(service)).startswith("unable to start supervisors: its supervisor exited with status 3")
    assert service.plan() == []

    monkeypatch.setattr(fitness, "FIRST_REST_S", 0)
    monkeypatch.setattr(fitness, "TRIAL", ["true"])

    def is_open() -> bool:
        caring.round()
        return fit.fault() is None

    wait_until(is_open, timeout_s=10, what="the host to be opened")


def test_supervisors_that_hang_before_their_claim_cost_no_retry_and_close_their_host_too(
    service: Service, run_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hanging: list[subprocess.Popen[bytes]] = []

    def start(_care: Care, _placement: Placement) -> "subprocess.Popen[bytes]":
        hanging.append(subprocess.Popen(["sleep", "600"]))
        return hanging[-1]

    monkeypatch.setattr(Care, "_start_supervisor", start)
    caring = Care(service.database, Settings(host_name="alpha", run_root=run_root), Fitness(run_root))
    try:
        job_id = service.submit("0", max_retries=0)
        for _ in range(2):
            assert closed(service) is None
            (placement,) = service.plan()
            caring.round()
            service.run_out(placement)
            assert caring.end_expired({placement.id}) == {placement.id}
            service.rest_is_over(job_id)
    finally:
        for each in hanging:
            each.kill()
            each.wait()

    assert closed(service) == "unable to start supervisors: its lease ran out: no word from its supervisor"
    assert (service.state(job_id), service.job(job_id).retries) == ("queued", 0)
