"""Copies of checkpoints, to a folder and to an object store: whole, registered, removed, and never in the way."""

import errno
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.database import Database
from jobs.storage_marks import read_mark
from tests.integration.checkpoint_files import SavingRun, name, start_run
from tests.integration.store.conftest import Service
from tests.object_store import ROOT, ObjectStore
from tests.waiting import wait_until
from worker import copies, remote_files, storage
from worker.copies import Copies


@pytest.fixture
def run(sqlite_url: str, tmp_path: Path) -> Iterator[SavingRun]:
    """A run that may save checkpoints."""
    service = Service(Database(sqlite_url))
    service.register()
    yield start_run(service, tmp_path / "runs")
    service.database.dispose()


@pytest.fixture(params=["folder", "object store"])
def root(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A checkpoint root of each kind."""
    if request.param == "folder":
        yield str(tmp_path / "shared")
        return
    with ObjectStore() as store:
        for variable, value in store.variables.items():
            monkeypatch.setenv(variable, value)
        yield ROOT


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "LOOK_S", 0.05)


def copy_all(run: SavingRun, root: str) -> None:
    """Copy what there is, as at the end of a run."""
    thread = Copies(run.database, run.placement, root)
    thread.start()
    thread.finish(timeout_s=20, is_pointless=lambda: False)
    thread.join(5)
    assert not thread.is_alive()


def content(place: str | None) -> bytes:
    assert place is not None
    return b"".join(remote_files.read_blocks(place))


def test_every_checkpoint_is_copied_whole_and_those_that_the_trainer_let_go_of_are_not_kept(
    run: SavingRun, root: str
) -> None:
    run.save(10)
    run.save(20, best=True)
    copy_all(run, root)
    first_copy = run.checkpoints()[10].copy_url
    assert content(first_copy) == run.contents[10]

    run.save(30, removed=(10,))
    copy_all(run, root)

    kept = run.checkpoints()
    assert {step: content(checkpoint.copy_url) for step, checkpoint in kept.items()} == {
        step: run.contents[step] for step in (20, 30)
    }
    assert {checkpoint.copy_storage for checkpoint in kept.values()} == {storage.storage_of_root(root)}
    assert {checkpoint.storage for checkpoint in kept.values()} == {read_mark(run.run_dir.path.parent.parent)}
    removed = run.checkpoints(with_removed=True)[10]
    assert (removed.copy_url, removed.copy_storage) == (None, None)
    assert first_copy is not None
    assert not remote_files.exists(first_copy)
    assert run.warnings() == []


def test_a_copy_lies_under_its_job_and_the_attempt_that_no_other_database_has(run: SavingRun, tmp_path: Path) -> None:
    run.save(10)
    copy_all(run, f"{tmp_path}/shared/")

    assert run.checkpoints()[10].copy_url == str(tmp_path / "shared" / "job-1" / "attempt-1-token" / name(10))


def test_where_several_wait_the_furthest_is_copied_first(run: SavingRun, tmp_path: Path) -> None:
    for step in (10, 30, 20):
        run.save(step)
    copy_all(run, str(tmp_path / "shared"))

    made = sorted((tmp_path / "shared").rglob("*.pt"), key=lambda path: path.stat().st_mtime_ns)
    assert [path.name for path in made] == [name(30), name(20), name(10)]


def test_a_run_that_is_over_waits_for_its_last_checkpoint_which_is_still_to_be_shipped(
    run: SavingRun, tmp_path: Path
) -> None:
    run.save(10)
    run.save(20, ship=False)
    thread = Copies(run.database, run.placement, str(tmp_path / "shared"))
    thread.start()
    is_finished = threading.Event()

    def finish() -> None:
        thread.finish(timeout_s=20, is_pointless=lambda: False)
        is_finished.set()

    waiting = threading.Thread(target=finish)
    waiting.start()
    wait_until(lambda: run.checkpoints()[10].copy_url, timeout_s=10, what="the first copy")
    assert not is_finished.is_set()
    run.ship()
    waiting.join(20)

    assert content(run.checkpoints()[20].copy_url) == run.contents[20]


def test_trouble_is_told_once_and_what_failed_is_copied_when_it_is_over(run: SavingRun, tmp_path: Path) -> None:
    run.save(10)
    in_the_way = tmp_path / "shared"
    in_the_way.touch()
    thread = Copies(run.database, run.placement, str(in_the_way))
    thread.start()
    wait_until(run.warnings, timeout_s=10, what="a warning")
    in_the_way.unlink()
    wait_until(lambda: run.checkpoints()[10].copy_url, timeout_s=20, what="the copy")
    thread.finish(timeout_s=10, is_pointless=lambda: False)

    (warning,) = run.warnings()
    assert str(in_the_way) in warning


def test_nothing_is_written_where_a_shared_folder_is_not_mounted_any_more(run: SavingRun, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    thread = Copies(run.database, run.placement, str(shared))
    thread.start()
    run.save(10)
    wait_until(lambda: run.checkpoints()[10].copy_url, timeout_s=10, what="the first copy")
    shared.rename(tmp_path / "unmounted")
    shared.mkdir()

    run.save(20)
    wait_until(run.warnings, timeout_s=10, what="a warning")
    thread.finish(timeout_s=0, is_pointless=lambda: True)
    thread.join(5)

    assert "not the folder that it was" in run.warnings()[0]
    assert list(shared.iterdir()) == []


def test_a_run_that_is_over_waits_no_longer_than_it_may_and_says_what_has_no_copy(
    run: SavingRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill_up(_source: Path, place: str, **_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", place)

    monkeypatch.setattr(remote_files, "put", fill_up)
    run.save(10)
    thread = Copies(run.database, run.placement, str(tmp_path / "shared"))
    thread.start()
    wait_until(run.warnings, timeout_s=10, what="a warning")

    thread.finish(timeout_s=0.3, is_pointless=lambda: False)
    thread.join(5)

    assert not thread.is_alive()
    assert "of the checkpoints of steps [10]" in run.warnings()[-1]


@pytest.mark.parametrize("wrong", ["{folder}/file", "{folder}/file/below", "/proc/nope", "foo://bucket/runs"])
def test_a_run_that_is_over_does_not_wait_for_a_root_that_only_somebody_can_mend(
    run: SavingRun, tmp_path: Path, wrong: str
) -> None:
    (tmp_path / "file").touch()
    root = wrong.format(folder=tmp_path)
    thread = Copies(run.database, run.placement, root)
    thread.start()
    run.save(10)

    thread.finish(timeout_s=600, is_pointless=lambda: False)  # longer than a test may take
    thread.join(5)

    assert not thread.is_alive()
    trouble, given_up = run.warnings()
    assert f"checkpoints cannot be copied to {root}" in trouble
    assert given_up.startswith(f"no copy under {root} of the checkpoints of steps [10] ([Errno ")


def test_a_run_with_nothing_to_copy_does_not_wait_for_a_store_that_is_away(run: SavingRun, tmp_path: Path) -> None:
    (tmp_path / "shared").touch()

    copy_all(run, str(tmp_path / "shared"))

    assert run.warnings() == []


def test_nothing_is_waited_for_where_that_is_pointless(run: SavingRun, tmp_path: Path) -> None:
    (tmp_path / "shared").touch()
    run.save(10)
    thread = Copies(run.database, run.placement, str(tmp_path / "shared"))
    thread.start()
    wait_until(run.warnings, timeout_s=10, what="a warning")

    thread.finish(timeout_s=600, is_pointless=lambda: True)
    thread.join(5)

    assert not thread.is_alive()
    assert len(run.warnings()) == 1
