"""A disk that fills up under a run: said so, nothing earlier is lost, and the run continues once there is space."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.distributed.runs import Run, prepare, processes_of, records
from trainer.errors import Cause
from trainer.journal import CheckpointSaved
from trainer.run_dir import EXIT_FAILED


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for one checkpoint of a tiny run, and not for two."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=9m", "rankzero-test", str(folder)]
    mounted = subprocess.run(mount, capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"only root can make a file system of a given size: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.timeout(300)
def test_a_full_disk_is_reported_and_the_run_continues_after_space_is_made(small_disk: Path, images: Path) -> None:
    run = Run(prepare(small_disk / "run", data=images, epochs=3, batch=8))
    assert run.wait() == EXIT_FAILED, run.output()
    error = run.run_dir.read_error()
    assert error is not None
    assert (error.cause, error.rank) == (Cause.DISK_FULL, 0)
    assert not processes_of(run.run_dir)
    assert [path.name for path in run.run_dir.checkpoints.iterdir()] == ["step-00000006.pt"]

    subprocess.run(["mount", "-o", "remount,size=100m", str(small_disk)], check=True)
    Run(run.run_dir).succeed()
    assert [record.step for record in records(run.run_dir) if isinstance(record, CheckpointSaved)] == [6, 12, 18]
    assert run.run_dir.read_error() is None
