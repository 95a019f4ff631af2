"""What a run begins with: the furthest checkpoint that can be had, from where it lies or from its copy, whole."""

import errno
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.database import Database, now
from jobs.spec import StartFrom
from jobs.store import nodes
from jobs.tables import Host, Job
from tests.integration.checkpoint_files import SavingRun, name, saving, start_run
from tests.integration.store.conftest import Service
from tests.object_store import ROOT, ObjectStore
from trainer.errors import CheckpointError
from worker import remote_files, resumption, storage
from worker.clock import clock
from worker.copies import Copies
from worker.resumption import Beginning, Resumption


@pytest.fixture
def service(sqlite_url: str) -> Iterator[Service]:
    service = Service(Database(sqlite_url))
    service.register()
    yield service
    service.database.dispose()


@pytest.fixture
def run(service: Service, tmp_path: Path) -> SavingRun:
    """A run that may save checkpoints, and continue from them."""
    return start_run(service, tmp_path / "runs")


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    """An object store for a checkpoint root."""
    with ObjectStore() as store:
        for variable, value in store.variables.items():
            monkeypatch.setenv(variable, value)
        yield store


def begin(run: SavingRun, start_from: StartFrom | None = None) -> Beginning:
    until = clock() + 60
    resumption = Resumption(run.database, run.placement, until=lambda: until, is_stopped=lambda: False)
    return resumption.begin(run.service.job(run.placement.job_id), start_from)


def copy_all(run: SavingRun, root: str) -> None:
    thread = Copies(run.database, run.placement, root)
    thread.start()
    thread.finish(timeout_s=20, is_pointless=lambda: False)
    thread.join(5)


def leave_its_host(run: SavingRun) -> None:
    """Make the run's host another than the one that saved its checkpoints: none of those files is there."""
    shutil.rmtree(run.run_dir.checkpoints)
    for checkpoint in run.checkpoints().values():
        with run.database.session_scope() as session:
            session.merge(checkpoint).host_name = "elsewhere"


def decided(run: SavingRun) -> int | None:
    """Step of what was decided for all nodes."""
    with run.database.session_scope(read_only=True) as session:
        decision = nodes.resume_decision(session, run.placement)
    assert decision is not None
    return None if decision.checkpoint is None else decision.checkpoint.step


def say_what_it_reads(run: SavingRun, host: str, *storages: str) -> None:
    """Have a host look, now, and say what it can read."""
    with run.database.session_scope() as session:
        row = session.get_one(Host, host)
        row.storages, row.looked_at = list(storages), now(session)


def fail_reads(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """Let a network file system fail that often."""
    left = iter(range(times))
    read_blocks = remote_files.read_blocks

    def read(place: str) -> Iterator[bytes]:
        if next(left, None) is not None:
            raise OSError(errno.ESTALE, "Stale file handle", place)
        return read_blocks(place)

    monkeypatch.setattr(remote_files, "read_blocks", read)
    monkeypatch.setattr(resumption, "WAIT_S", 0)


def start_from(run: SavingRun, origin: SavingRun, step: int, **fields: object) -> StartFrom:
    """Make the run's job one that starts from a checkpoint of another."""
    checkpoint = origin.checkpoints(with_removed=True)[step]
    with run.database.session_scope() as session:
        session.get_one(Job, run.placement.job_id).parent_checkpoint_id = checkpoint.id
    return StartFrom.model_validate({"job": origin.placement.job_id, "checkpoint": checkpoint.id} | fields)


def test_a_run_continues_from_the_furthest_checkpoint_where_it_lies(run: SavingRun) -> None:
    run.save(10)
    path = run.save(20)

    assert begin(run).resume == path
    assert decided(run) == 20


def test_a_job_without_checkpoints_begins_anew_and_the_other_nodes_are_told(run: SavingRun) -> None:
    assert begin(run) == Beginning()
    assert decided(run) is None
    assert run.warnings() == []


def test_a_damaged_checkpoint_is_passed_over_with_a_warning(run: SavingRun) -> None:
    path = run.save(10)
    run.save(20).write_bytes(b"half of it")

    assert begin(run).resume == path
    (warning,) = run.warnings()
    assert "step 20 is passed over: its content does not match its hash" in warning
    assert decided(run) == 10


def test_a_file_that_is_gone_from_its_own_host_is_told_to_be_removed_unless_it_has_a_copy(
    run: SavingRun, tmp_path: Path
) -> None:
    run.save(10).unlink()

    assert begin(run) == Beginning()
    assert run.checkpoints() == {}

    path = run.save(20)
    copy_all(run, str(tmp_path / "shared"))
    path.unlink()
    assert begin(run).resume == tmp_path / "shared" / "job-1" / "attempt-1-token" / name(20)
    assert set(run.checkpoints()) == {20}


def test_a_file_error_that_goes_by_costs_no_checkpoint(run: SavingRun, monkeypatch: pytest.MonkeyPatch) -> None:
    path = run.save(10)
    fail_reads(monkeypatch, 3)

    assert begin(run).resume == path
    assert run.warnings() == []


def test_a_file_error_that_stays_ends_the_attempt_rather_than_that_hours_are_trained_anew(
    run: SavingRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.save(10)
    fail_reads(monkeypatch, resumption.TRIES)
    with pytest.raises(OSError, match="Stale file handle"):
        begin(run)

    copy_all(run, str(tmp_path / "shared"))
    fail_reads(monkeypatch, resumption.TRIES)
    path = begin(run).resume

    assert path is not None
    assert path.is_relative_to(tmp_path / "shared"), "its copy is as good"


def test_a_read_that_breaks_off_names_its_file(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="Is a directory") as error:
        next(remote_files.read_blocks(str(tmp_path)))
    assert error.value.filename == str(tmp_path)

    memory = Path("/proc/self/mem")  # nothing is at its beginning: it opens, and cannot be read
    if memory.exists():
        with pytest.raises(OSError, match="Input/output error") as error:
            next(remote_files.read_blocks(str(memory)))
        assert error.value.filename == str(memory)


def test_while_the_run_root_is_not_mounted_no_checkpoint_of_it_is_given_up(run: SavingRun, tmp_path: Path) -> None:
    path = run.save(10)
    (tmp_path / "runs").rename(tmp_path / "unmounted")

    with pytest.raises(OSError, match="mount it") as error:
        begin(run)
    assert error.value.filename == str(path)

    (tmp_path / "unmounted").rename(tmp_path / "runs")
    assert begin(run).resume == path


def test_while_the_shared_folder_is_not_mounted_no_copy_in_it_is_given_up(run: SavingRun, tmp_path: Path) -> None:
    run.save(10)
    copy_all(run, str(tmp_path / "shared"))
    leave_its_host(run)
    with run.database.session_scope() as session:
        session.get_one(Host, "alpha").storages = [storage.mark(tmp_path / "shared")]
    (tmp_path / "shared").rename(tmp_path / "unmounted")

    with pytest.raises(OSError, match="mount it"):
        begin(run)


def test_a_run_on_several_hosts_that_cannot_all_read_its_checkpoint_says_where_it_begins_instead(
    service: Service, tmp_path: Path
) -> None:
    service.register("beta")
    first, _second = service.run_on("alpha", "beta")
    run = saving(service, first, tmp_path / "runs")
    with run.database.session_scope() as session:
        session.get_one(Host, "alpha").storages = [storage.mark(tmp_path / "runs")]
    run.save(1000)
    say_what_it_reads(run, "beta")

    assert begin(run) == Beginning()
    (warning,) = run.warnings()
    assert "the checkpoint of step 1000 is on host alpha, and cannot be read on beta, so it begins anew" in warning

    say_what_it_reads(run, "beta", storage.mark(tmp_path / "runs"))
    assert begin(run).resume is not None
    assert run.warnings() == [warning]


def test_a_run_on_several_hosts_does_not_begin_anew_before_each_has_said_whether_it_can_read_the_checkpoint(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.register("beta")
    first, _second = service.run_on("alpha", "beta")
    run = saving(service, first, tmp_path / "runs")
    say_what_it_reads(run, "alpha", storage.mark(tmp_path / "runs"))
    path = run.save(1000)
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        say_what_it_reads(run, "beta", storage.mark(tmp_path / "runs"))

    monkeypatch.setattr("worker.resumption.time.sleep", wait)

    assert begin(run).resume == path
    assert len(waits) == 1
    assert run.warnings() == []


def test_on_another_host_a_copy_in_a_shared_folder_is_used_where_it_lies(run: SavingRun, tmp_path: Path) -> None:
    run.save(10)
    copy_all(run, str(tmp_path / "shared"))
    leave_its_host(run)

    path = begin(run).resume

    assert path is not None
    assert path.is_relative_to(tmp_path / "shared")
    assert path.read_bytes() == run.contents[10]
    assert run.warnings() == []


@pytest.mark.usefixtures("store")
def test_on_another_host_a_copy_in_an_object_store_is_brought_with_the_best_so_far_and_goes_with_the_run(
    run: SavingRun,
) -> None:
    run.save(10, best=True)
    run.save(20)
    copy_all(run, ROOT)
    leave_its_host(run)

    path = begin(run).resume

    assert path == run.run_dir.path / "resume" / name(20)
    assert path.read_bytes() == run.contents[20]
    assert path.with_name(name(10)).read_bytes() == run.contents[10]
    resumption.clear(run.run_dir.path)
    assert not path.parent.exists()


def test_a_copy_that_is_damaged_or_gone_is_passed_over(run: SavingRun, tmp_path: Path) -> None:
    for step in (10, 20, 30):
        run.save(step)
    copy_all(run, str(tmp_path / "shared"))
    leave_its_host(run)
    copies = tmp_path / "shared" / "job-1" / "attempt-1-token"
    (copies / name(30)).unlink()
    (copies / name(20)).write_bytes(b"half of it")

    assert begin(run).resume == copies / name(10)
    gone, damaged = run.warnings()
    assert "there is no such file here, and its copy" in gone
    assert "does not match its hash" in damaged


def test_a_store_that_does_not_answer_ends_the_attempt_rather_than_that_hours_are_trained_anew(
    run: SavingRun, store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.save(10)
    copy_all(run, ROOT)
    leave_its_host(run)
    store.stop()
    monkeypatch.setattr(resumption, "WAIT_S", 0)

    with pytest.raises(OSError, match=r"s3://bucket/runs/job-1/attempt-1-token/step-00000010\.pt"):
        begin(run)


@pytest.mark.parametrize("mode", ["weights", "resume"])
def test_a_job_starts_from_another_s_checkpoint_until_it_has_one_of_its_own(
    service: Service, run: SavingRun, tmp_path: Path, mode: str
) -> None:
    origin_path = run.save(10)
    other = start_run(service, tmp_path / "runs", device="1")
    wanted = start_from(other, run, 10, mode=mode)

    beginning = begin(other, wanted)
    expected = Beginning(resume=origin_path, step=10) if mode == "resume" else Beginning(weights=origin_path)
    assert beginning == expected

    path = other.save(5)
    assert begin(other, wanted).resume == path


def test_a_start_from_a_checkpoint_that_is_gone_says_so_and_is_no_fault_that_a_retry_mends(
    service: Service, run: SavingRun, tmp_path: Path
) -> None:
    run.save(10)
    other = start_run(service, tmp_path / "runs", device="1")
    wanted = start_from(other, run, 10)
    run.save(20, removed=(10,))

    with pytest.raises(CheckpointError, match=r"start_from: checkpoint 1 of job 1 \(step 10\) cannot be had") as error:
        begin(other, wanted)
    assert error.value.cause == "checkpoint"


def test_another_node_begins_with_what_node_0_has_decided_and_says_so_where_it_cannot(run: SavingRun) -> None:
    path = run.save(10)
    begin(run)
    run.save(20)
    run.placement.node_rank = 1  # in this process: what the supervisor of another host has of the attempt

    assert begin(run).resume == path

    path.unlink()
    with pytest.raises(OSError, match="node 0 continues from it, and host alpha cannot: there is no such file here"):
        begin(run)
