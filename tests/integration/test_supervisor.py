"""The supervisor as the process it is, on placements whose run cannot begin: the attempt ends and says why."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from jobs.database import Database
from jobs.spec import JobSpec
from jobs.states import Outcome
from jobs.store import attempts, hosts, jobs
from jobs.tables import Placement
from tests.api_server import NO_BROKER
from tests.children import start_child
from tests.integration.store.conftest import Service
from tests.proxy import Proxy
from tests.waiting import wait_until
from worker.link import POLL_S


@pytest.fixture
def service(database_url: str) -> Iterator[Service]:
    service = Service(Database(database_url))
    service.register()
    yield service
    service.database.dispose()


def launch(service: Service, run_dir: Path, **fields: object) -> Placement:
    """A placement that waits for its supervisor, and whose run directory is to be `run_dir`."""
    placement = service.launch("0", **fields)
    with service.database.session_scope() as session:
        attempts.get_placement(session, placement.id).run_dir = str(run_dir)
    return placement


def run_supervisor(database_url: str, placement_id: int, **settings: object) -> "subprocess.CompletedProcess[str]":
    """Run a supervisor to its end."""
    return subprocess.run(
        [sys.executable, "-m", "worker.supervisor", str(placement_id)],
        env=os.environ
        | {"RANKZERO_DATABASE_URL": database_url, "RANKZERO_BROKER_URL": NO_BROKER}
        | {f"RANKZERO_{name.upper()}": str(value) for name, value in settings.items()},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def supervise(service: Service, placement: Placement, **settings: object) -> str:
    """Run the supervisor of a placement to its end; return what it wrote."""
    database_url = service.database.url.render_as_string(hide_password=False)
    done = run_supervisor(database_url, placement.id, **settings)
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_a_run_that_its_host_cannot_begin_is_lost_and_not_a_fault_of_the_training(
    service: Service, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    placement = launch(service, tmp_path / "file" / "run")

    supervise(service, placement)

    job = service.job(placement.job_id)
    (attempt,) = service.attempts(job.id)
    assert (job.state, job.retries, attempt.outcome) == ("queued", 1, Outcome.LOST)
    assert job.failure is not None
    assert job.failure["cause"] == "lost"
    assert "Not a directory" in job.failure["message"]
    assert str(tmp_path / "file") in job.failure["message"]
    assert service.live_leases() == []


def test_a_run_that_finds_its_host_short_of_disk_is_given_back_without_a_retry_and_the_host_says_so(
    service: Service, tmp_path: Path
) -> None:
    placement = launch(service, tmp_path / "run")

    supervise(service, placement, min_free_bytes=2**60)

    job = service.job(placement.job_id)
    (attempt,) = service.attempts(job.id)
    assert (job.state, job.retries, attempt.outcome) == ("queued", 0, Outcome.LOST)
    assert attempt.failure is not None
    assert attempt.failure["cause"] == "disk_full"
    assert str(tmp_path.parent) in attempt.failure["message"]
    assert not (tmp_path / "run").exists()
    assert service.live_leases() == []
    with service.database.session_scope(read_only=True) as session:
        free_bytes = hosts.get(session, placement.host_name).free_bytes
    assert free_bytes is not None
    assert 0 < free_bytes < 2**60


def test_a_spec_that_this_version_cannot_read_fails_at_once_and_names_the_field(
    service: Service, tmp_path: Path
) -> None:
    placement = launch(service, tmp_path / "run")
    with service.database.session_scope() as session:
        job = jobs.get(session, placement.job_id)
        job.spec = job.spec | {"from_the_future": True}

    supervise(service, placement)

    job = service.job(placement.job_id)
    assert (job.state, job.retries) == ("failed", 0)
    assert job.failure is not None
    assert job.failure["cause"] == "config"
    assert "from_the_future" in job.failure["message"]
    assert service.live_leases() == []


def test_a_supervisor_of_a_placement_that_another_has_leaves_it_alone(service: Service, tmp_path: Path) -> None:
    placement = launch(service, tmp_path / "run")
    service.claim(placement, "1:1")
    before = service.everything()

    assert "not_ours" in supervise(service, placement)

    assert service.everything() == before


def test_a_supervisor_of_a_placement_that_has_ended_leaves_it_alone(service: Service, tmp_path: Path) -> None:
    placement = launch(service, tmp_path / "run")
    service.end(placement, Outcome.LOST)
    before = service.everything()

    assert "not_ours" in supervise(service, placement)

    assert service.everything() == before
    assert not (tmp_path / "run").exists()


def wait_in_an_outage(proxy: Proxy, placement: Placement, folder: Path) -> "subprocess.Popen[bytes]":
    """Start a supervisor that cannot reach its database, and return it once two leases have passed."""
    own = {"DATABASE_URL": proxy.url, "BROKER_URL": NO_BROKER, "LEASE_S": "5", "HEARTBEAT_S": "1"}
    log = folder / "log"
    supervisor = start_child(
        [sys.executable, "-m", "worker.supervisor", str(placement.id)],
        log=log,
        folder=folder,
        environment=os.environ | {f"RANKZERO_{name}": value for name, value in own.items()},
    )
    wait_until(
        lambda: supervisor.poll() is not None or log.read_text().count("database_away") > 2 * 5 / POLL_S,
        timeout_s=60,
        what=lambda: f"two leases to pass: {log.read_text()}",
    )
    assert supervisor.poll() is None, log.read_text()
    return supervisor


def test_a_supervisor_claims_its_placement_after_an_outage_longer_than_its_lease(
    postgresql_url: str, tmp_path: Path
) -> None:
    service = Service(Database(postgresql_url))
    service.register()
    (tmp_path / "file").touch()
    placement = launch(service, tmp_path / "file" / "run")

    with Proxy(postgresql_url) as proxy:
        with proxy.refusing():
            supervisor = wait_in_an_outage(proxy, placement, tmp_path)
        assert supervisor.wait(timeout=60) == 0

    (attempt,) = service.attempts(placement.job_id)
    assert attempt.failure is not None
    assert "Not a directory" in attempt.failure["message"], "it was to begin its run, which cannot begin"
    assert service.live_leases() == []
    service.database.dispose()


def test_a_supervisor_that_is_told_to_stop_in_an_outage_before_its_claim_leaves(
    postgresql_url: str, tmp_path: Path
) -> None:
    service = Service(Database(postgresql_url))
    service.register()
    placement = launch(service, tmp_path / "run")

    with Proxy(postgresql_url) as proxy, proxy.refusing():
        supervisor = wait_in_an_outage(proxy, placement, tmp_path)
        supervisor.terminate()
        assert supervisor.wait(timeout=60) == 0

    with service.database.session_scope(read_only=True) as session:
        assert attempts.get_placement(session, placement.id).claimed_at is None
    service.database.dispose()


def test_a_supervisor_waits_a_lease_at_most_for_a_database_whose_schema_is_missing(empty_database_url: str) -> None:
    done = run_supervisor(empty_database_url, 1, lease_s=2, heartbeat_s=0.5)

    assert done.returncode == 1
    assert "database_away" in done.stderr, "it waits at first: somebody may be bringing it"
    assert re.search(r'no such table: placements|relation "placements" does not exist', done.stderr), done.stderr


def test_a_stored_spec_is_the_one_that_was_validated(service: Service) -> None:
    job = service.job(service.submit("0"))

    assert JobSpec.model_validate(job.spec).model_dump(mode="json") == job.spec


@pytest.mark.parametrize(
    ("train", "settings", "failure"),
    [
        ({"recipe": "script", "options": {"script": "/a.py"}}, {}, ("config", "RANKZERO_SCRIPTS=on")),
        (
            {"recipe": "script", "options": {"script": "ROOT/code/out.py"}},
            {"scripts": "on", "code_roots": "ROOT/code"},
            ("config", "ROOT/outside/a.py"),
        ),
        ({"model": "mlp", "data": "photos:out"}, {"data_roots": "photos=ROOT/photos"}, ("data", "ROOT/outside")),
        ({"model": "mlp", "data": "photos:"}, {}, ("data", "has no data root 'photos'")),
    ],
)
def test_what_a_host_does_not_allow_is_not_begun_whatever_was_accepted(
    service: Service, tmp_path: Path, train: dict[str, Any], settings: dict[str, str], failure: tuple[str, str]
) -> None:
    for folder in ("code", "photos", "outside"):
        (tmp_path / folder).mkdir()
    (tmp_path / "outside" / "a.py").write_text("raise SystemExit\n")
    (tmp_path / "code" / "out.py").symlink_to(tmp_path / "outside" / "a.py")
    (tmp_path / "photos" / "out").symlink_to(tmp_path / "outside")
    here = json.loads(json.dumps([train, settings, *failure]).replace("ROOT", str(tmp_path)))
    placement = launch(service, tmp_path / "run", train=here[0])

    supervise(service, placement, **here[1])

    job = service.job(placement.job_id)
    assert (job.state, job.retries) == ("failed", 0)
    assert job.failure is not None
    assert job.failure["cause"] == here[2]
    assert here[3] in job.failure["message"]
    assert not (tmp_path / "run" / "trainer.log").exists()
    assert service.live_leases() == []


def test_a_trainer_is_held_to_the_data_roots_of_its_host_in_what_a_data_set_links_to(
    sqlite_url: str, tmp_path: Path
) -> None:
    service = Service(Database(sqlite_url))
    service.register()
    photos, elsewhere = tmp_path / "photos", tmp_path / "elsewhere.png"
    Image.new("RGB", (8, 8)).save(elsewhere)
    for name in ("cat", "dog"):
        (photos / name).mkdir(parents=True)
        for number in range(4):
            Image.new("RGB", (8, 8)).save(photos / name / f"{number}.png")
    (photos / "cat" / "link.png").symlink_to(elsewhere)
    train = {"model": "squeezenet1_1", "data": "photos:", "val_fraction": 0.5, "batch": 4, "num_workers": 0}
    placement = launch(service, tmp_path / "runs" / "job-1" / "attempt-1-a", train=train)

    supervise(service, placement, data_roots=f"photos={photos}", run_root=tmp_path / "runs", min_free_bytes=0)

    failure = service.job(placement.job_id).failure
    service.database.dispose()
    assert failure is not None
    assert failure["cause"] == "data"
    assert f"it lies at {elsewhere}, outside of the folders" in failure["message"]
