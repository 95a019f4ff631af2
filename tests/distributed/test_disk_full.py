"""A disk that fills up under a run: said so, nothing earlier is lost, and the run continues once there is space."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.distributed.runs import RUN_S, Run, prepare, processes_of, records
from trainer.errors import Cause
from trainer.journal import CheckpointSaved
from trainer.run_dir import EXIT_DISK_FULL, EXIT_FAILED, EXIT_USAGE

FULL = Path("/dev/full")
needs_dev_full = pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")


class SmallDisk:
    """A file system with room for one checkpoint of a tiny run, and not for two.

    A shell mounts it in a namespace of its own, so that no root is needed, and everybody else reaches it through the
    shell's entry in /proc. It vanishes with the shell, which ends when the test process does.
    """

    def __init__(self, folder: Path) -> None:
        self._shell = subprocess.Popen(
            ["unshare", "--user", "--map-root-user", "--mount", "sh"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._mounted = folder
        self.said = self._tell(f"mount -t tmpfs -o size=9m rankzero-test '{folder}' && echo mounted")
        self.path = Path(f"/proc/{self._shell.pid}/root{folder}")

    def enlarge(self) -> None:
        # Else mount repeats the options that the kernel shows: among them a uid that this namespace does not have.
        resize = f"mount --options-mode=ignore -o remount,size=100m rankzero-test '{self._mounted}'"
        assert self._tell(f"{resize} && echo done") == "done"

    def close(self) -> None:
        with self._shell:
            assert self._shell.stdin is not None
            with suppress(BrokenPipeError):
                self._shell.stdin.close()

    def _tell(self, command: str) -> str:
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        with suppress(BrokenPipeError):
            self._shell.stdin.write(f"{{ {command}; }} 2>&1 | tail -n 1\n")
            self._shell.stdin.flush()
        return self._shell.stdout.readline().strip()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[SmallDisk]:
    folder = tmp_path / "small"
    folder.mkdir()
    try:
        disk = SmallDisk(folder)
    except FileNotFoundError:
        pytest.skip("this system has no unshare (util-linux) to make a file system of a given size with")
    if disk.said != "mounted":
        disk.close()
        pytest.skip(f"this system lets nobody make a file system of a given size: {disk.said}")
    yield disk
    disk.close()


@pytest.mark.timeout(300)
def test_a_disk_full_on_the_last_epoch_is_reported_and_the_run_continues_after_space_is_made(
    small_disk: SmallDisk, images: Path
) -> None:
    run = Run(prepare(small_disk.path / "run", data=images, epochs=2, batch=8))
    assert run.wait() == EXIT_DISK_FULL, run.output()
    error = run.run_dir.read_error()
    assert error is not None
    assert (error.cause, error.rank) == (Cause.DISK_FULL, 0)
    assert "ENOSPC" in error.message
    assert not processes_of(run.run_dir)
    assert [path.name for path in run.run_dir.checkpoints.iterdir()] == ["step-00000006.pt"]

    small_disk.enlarge()
    Run(run.run_dir).succeed()
    assert [record.step for record in records(run.run_dir) if isinstance(record, CheckpointSaved)] == [6, 12]
    assert run.run_dir.completed() is not None
    assert run.run_dir.read_error() is None


@pytest.mark.timeout(300)
def test_a_disk_without_room_for_any_report_is_told_by_the_exit_status(small_disk: SmallDisk, images: Path) -> None:
    run = Run(prepare(small_disk.path / "run", data=images, epochs=2000, batch=8, log_every=1))
    run.wait_for_step(2)
    with suppress(OSError), (small_disk.path / "filler").open("wb", buffering=0) as filler:
        while True:
            filler.write(b"x" * 4096)
    assert run.wait() == EXIT_DISK_FULL, run.output()
    error = run.run_dir.read_error()  # may fit after all, where a half-written checkpoint was removed
    assert error is None or error.cause is Cause.DISK_FULL
    assert not processes_of(run.run_dir)


@needs_dev_full
def test_a_rank_whose_log_cannot_be_written_reports_its_error_all_the_same(tmp_path: Path, images: Path) -> None:
    run_dir = prepare(tmp_path / "run", data=images, ranks=1, model="resnet81")
    run_dir.log(0).symlink_to(FULL)
    run = Run(run_dir)
    assert run.wait() == EXIT_USAGE, run.output()
    error = run_dir.read_error()
    assert error is not None
    assert (error.cause, error.rank) == (Cause.CONFIG, 0)
    assert error.traceback is not None


@needs_dev_full
def test_a_run_whose_display_cannot_be_written_goes_on(tmp_path: Path, images: Path) -> None:
    run_dir = prepare(tmp_path / "run", data=images, ranks=1, epochs=2, batch=8)
    with FULL.open("wb") as full:
        command = [sys.executable, "-m", "trainer", str(run_dir.path)]
        ended = subprocess.run(command, stdout=full, stderr=full, timeout=RUN_S, check=False)
    assert ended.returncode == 0
    assert run_dir.completed() is not None


def test_a_run_whose_display_nobody_reads_any_more_goes_on(tmp_path: Path, images: Path) -> None:
    run_dir = prepare(tmp_path / "run", data=images, ranks=1, epochs=2, batch=8)
    with subprocess.Popen([sys.executable, "-m", "trainer", str(run_dir.path)], stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        process.stderr.close()  # as `… 2>&1 | head` does once it has seen enough
        assert process.wait(RUN_S) == 0
    assert run_dir.completed() is not None


@needs_dev_full
@pytest.mark.parametrize(("argument", "status"), [("no-such.yaml", EXIT_USAGE), ("catalog", EXIT_DISK_FULL)])
def test_the_exit_status_holds_where_nothing_can_be_said(argument: str, status: int, tmp_path: Path) -> None:
    with FULL.open("wb") as full:
        command = [sys.executable, "-m", "trainer", argument]
        ended = subprocess.run(command, cwd=tmp_path, stdout=full, stderr=full, timeout=RUN_S, check=False)
    assert ended.returncode == status


def test_a_launcher_that_cannot_make_its_folders_reports_that(tmp_path: Path, images: Path) -> None:
    run_dir = prepare(tmp_path / "run", data=images, ranks=1)
    run_dir.ranks.rmdir()
    run_dir.ranks.write_text("a file where the folder belongs")
    run = Run(run_dir)
    assert run.wait() == EXIT_FAILED, run.output()
    error = run_dir.read_error()
    assert error is not None
    assert (error.cause, error.rank, error.exception) == (Cause.EXCEPTION, None, "builtins.FileExistsError")
