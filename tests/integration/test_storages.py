"""Storages with real files and a real database: what a host says it can read is what it can read."""

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from jobs.database import Database, now
from jobs.settings import Settings
from jobs.spec import JobSpec
from jobs.storage_marks import MARK
from jobs.store import hosts, jobs
from jobs.tables import Checkpoint
from tests.api_server import NO_BROKER
from tests.integration.running_job import start_job
from tests.waiting import wait_until
from worker import storage
from worker.fitness import Fitness
from worker.registration import Registration
from worker.storage import Storages


def storages(database: Database, run_root: Path, checkpoint_root: str | None = None) -> Storages:
    """What the worker of a host with these settings makes at its start."""
    return Storages(database, Settings(run_root=run_root, checkpoint_root=checkpoint_root))


def save_checkpoint(database: Database, **columns: object) -> None:
    """A job that runs has saved a checkpoint."""
    with database.session_scope() as session:
        spec = JobSpec.model_validate({"device": "0,1", "train": {"model": "mlp", "data": "digits", "batch": 64}})
        job_id = jobs.submit(session, spec).job.id
    running = start_job(database, job_id)
    with database.session_scope() as session:
        session.add(
            Checkpoint(
                job_id=job_id,
                attempt=running.placement.attempt,
                host_name="elsewhere",
                step=1,
                epoch=1,
                sha256="0" * 64,
                size_bytes=1,
                best=False,
                values={},
                created_at=running.placement.created_at,
                **columns,
            )
        )


def test_hosts_that_come_to_a_folder_at_once_know_it_by_one_id(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as hosts:
        ids = set(hosts.map(lambda _: storage.mark(tmp_path / "shared" / "runs"), range(32)))

    assert len(ids) == 1
    assert storage.mark(tmp_path / "other") not in ids


def test_a_folder_s_mark_that_a_crash_left_empty_is_named_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / MARK).touch()
    monkeypatch.setattr(storage, "_MARK_WRITTEN_S", 0.1)

    with pytest.raises(OSError, match="remove it") as error:
        storage.mark(tmp_path)

    assert error.value.filename == str(tmp_path / MARK)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("s3://bucket/runs", "s3://bucket/runs"),
        ("s3://bucket/runs/job-1/attempt-1/step-1.pt", "s3://bucket/runs"),
        ("s3://bucket", "s3://bucket"),
        ("gs://bucket/", "gs://bucket"),
    ],
)
def test_all_files_of_an_object_store_s_first_folder_are_one_storage(url: str, expected: str) -> None:
    assert storage.storage_of_url(url) == expected


def test_a_worker_whose_run_root_cannot_be_written_does_not_start_and_names_the_folder(
    sqlite_url: str, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    run_root = tmp_path / "file" / "runs"

    done = subprocess.run(
        [sys.executable, "-m", "worker"],
        env=os.environ
        | {"RANKZERO_DATABASE_URL": sqlite_url, "RANKZERO_BROKER_URL": NO_BROKER, "RANKZERO_RUN_ROOT": str(run_root)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert done.returncode == 1
    assert f"run_root: {run_root} cannot be used" in done.stderr
    assert "RANKZERO_RUN_ROOT" in done.stderr


def test_two_hosts_that_share_a_checkpoint_root_publish_it_both_after_their_own_run_roots(
    database: Database, tmp_path: Path
) -> None:
    alpha, beta = (storages(database, tmp_path / name, str(tmp_path / "shared")) for name in ("alpha", "beta"))
    alpha.look()
    beta.look()

    assert alpha.ids[0] == storage.mark(tmp_path / "alpha")
    assert beta.ids[0] == storage.mark(tmp_path / "beta")
    assert alpha.ids[1:] == beta.ids[1:] == [storage.mark(tmp_path / "shared")]


def test_a_host_finds_by_itself_the_storages_of_checkpoints_that_it_can_read(
    database: Database, tmp_path: Path
) -> None:
    own_root, runs, copies, gone = (tmp_path / name for name in ("own", "runs", "copies", "gone"))
    by_url = tmp_path / "by-url"
    save_checkpoint(
        database,
        path=str(runs / "job-1" / "attempt-1-a" / "checkpoints" / "step-1.pt"),
        storage=storage.mark(runs),
        copy_url=str(copies / "job-1" / "attempt-1-a" / "step-1.pt"),
        copy_storage=storage.mark(copies),
    )
    save_checkpoint(
        database,
        path=str(gone / "job-3" / "attempt-1-a" / "checkpoints" / "step-1.pt"),
        storage="of another host that shares nothing",
        copy_url=f"file://{by_url}/job-3/attempt-1-a/step-1.pt",
        copy_storage=storage.mark(by_url),
    )
    save_checkpoint(
        database,
        path=str(gone / "job-2" / "attempt-1-a" / "checkpoints" / "step-1.pt"),
        storage="of a host that shares nothing",
    )

    host = storages(database, own_root)
    host.look()

    assert set(host.ids) == {storage.mark(folder) for folder in (own_root, runs, copies, by_url)}


def test_a_host_looks_at_once_when_a_checkpoint_has_come_to_lie_in_a_storage_that_it_does_not_know(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setattr(storage, "NEWS_S", 0.02)
    host = storages(database, tmp_path / "own")
    looks: list[list[str]] = []
    host.start(lambda: looks.append(host.ids))
    request.addfinalizer(host.stop)
    assert looks == [[storage.mark(tmp_path / "own")]]

    copied = storage.mark(tmp_path / "copies")
    with database.session_scope(read_only=True) as session:
        placed_at = now(session)
    save_checkpoint(
        database,
        path="/of/another/host/step-1.pt",
        storage=None,
        copy_url=str(tmp_path / "copies" / "step-1.pt"),
        copy_storage=copied,
        placed_at=placed_at,
    )

    wait_until(lambda: copied in looks[-1], timeout_s=10, what="the next look")
    assert host.looked_at is not None


def test_until_a_worker_that_has_just_started_has_looked_the_word_of_the_one_before_it_stands(
    database: Database, tmp_path: Path
) -> None:
    folder = tmp_path / "shared"
    save_checkpoint(database, path=str(folder / "step-1.pt"), storage=storage.mark(folder))

    def published(worker: Registration) -> set[str]:
        worker.keep()
        with database.session_scope(read_only=True) as session:
            return set(hosts.get(session, "alpha").storages)

    settings = Settings(host_name="alpha", run_root=tmp_path / "own")
    before, after = Storages(database, settings), Storages(database, settings)
    before.look()
    both = {storage.mark(tmp_path / "own"), storage.mark(folder)}
    assert published(Registration(database, settings, [], before, Fitness(settings.run_root))) == both
    restarted = Registration(database, settings, [], after, Fitness(settings.run_root))
    assert published(restarted) == both
    shutil.rmtree(folder)
    after.look()
    assert published(restarted) == {storage.mark(tmp_path / "own")}
