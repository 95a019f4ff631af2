"""Runs that fail: the first failing rank is named with what it knew, and nothing is left behind."""

import time
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.distributed.runs import (
    RUN_S,
    Run,
    draw_images,
    epochs,
    prepare,
    processes_of,
    records,
    wait_until_gone,
)
from tests.waiting import wait_until
from trainer.data.image_folder import open_image_folder
from trainer.error_report import ErrorReport
from trainer.errors import Cause
from trainer.journal import CheckpointSaved, Completed
from trainer.run_dir import EXIT_FAILED, EXIT_USAGE, RunDir
from trainer.seeds import sample_order

LONG: dict[str, Any] = {"epochs": 50, "batch": 4}


def fail(run: Run, *, status: int = EXIT_FAILED) -> ErrorReport:
    """Wait for the end, which has to be a failure, and return what error.json says."""
    assert run.wait() == status, run.output()
    error = run.run_dir.read_error()
    assert error is not None
    assert run.run_dir.completed() is None
    assert not processes_of(run.run_dir)
    return error


@pytest.mark.timeout(300)
def test_a_rank_that_raises_in_epoch_2_is_named_with_its_traceback_within_40_s(tmp_path: Path) -> None:
    folder = draw_images(tmp_path / "images", train=400, val=4)
    run = Run(prepare(tmp_path / "run", data=folder, epochs=2, batch=4, lr=1e-4, cache_gb=0))
    # The last image that rank 1, and rank 0 never, reads in the second epoch breaks once the first epoch is over.
    files = open_image_folder(folder, val_fraction=0.1).train
    broken = files[sample_order(len(files), seed=0, epoch=1)[-1]].path
    wait_until(lambda: epochs(run.run_dir), timeout_s=RUN_S, what=lambda: f"the first epoch\n{run.output()}")
    broken.write_bytes(b"no longer an image")
    begun = time.monotonic()
    error = fail(run)
    assert time.monotonic() - begun < 40
    assert (error.rank, error.cause) == (1, Cause.DATA)
    assert str(broken) in error.message
    assert error.exception == "trainer.errors.DataError"
    assert error.traceback is not None
    assert "read_image" in error.traceback
    assert run.run_dir.last_checkpoint() is not None


def test_a_file_cut_at_a_third_is_named_before_the_first_step(tmp_path: Path) -> None:
    folder = draw_images(tmp_path / "images", train=40, val=4)
    broken = folder / "train" / "class0" / "0036.png"
    content = broken.read_bytes()
    broken.write_bytes(content[: len(content) // 3])
    run = Run(prepare(tmp_path / "run", data=folder, epochs=1, batch=4, num_workers=1))
    error = fail(run)
    assert error.cause is Cause.DATA
    assert "1 of 44 images cannot be used" in error.message
    assert str(broken) in error.message
    assert records(run.run_dir) == []


def test_a_rank_killed_from_outside_is_named_with_its_signal(tmp_path: Path, images: Path) -> None:
    run = Run(prepare(tmp_path / "run", data=images, **LONG))
    run.wait_for_step(2)
    run.rank_process(1).kill()
    error = fail(run)
    assert (error.rank, error.cause, error.signal) == (1, Cause.KILLED_BY_SIGNAL, "SIGKILL")


def test_a_rank_that_dies_beside_a_stuck_one_ends_both(tmp_path: Path, images: Path) -> None:
    run = Run(prepare(tmp_path / "run", data=images, **LONG))
    run.wait_for_step(2)
    run.rank_process(0).suspend()
    run.rank_process(1).kill()
    assert (error := fail(run)).rank == 1
    assert error.signal == "SIGKILL"


@pytest.mark.parametrize("workers", [0, 2])
def test_no_rank_and_no_loader_outlives_a_killed_launcher(workers: int, tmp_path: Path, images: Path) -> None:
    run = Run(prepare(tmp_path / "run", data=images, **(LONG | {"num_workers": workers})))
    run.wait_for_step(2)
    assert len(processes_of(run.run_dir)) >= 2 + 2 * workers
    run.kill()
    wait_until_gone(run.run_dir, timeout_s=5)


def test_no_rank_outlives_a_launcher_killed_while_the_ranks_import(tmp_path: Path, images: Path) -> None:
    run = Run(prepare(tmp_path / "run", data=images, **LONG))
    run.wait_for_ranks(2)
    run.kill()
    wait_until_gone(run.run_dir, timeout_s=5)


def test_no_loader_outlives_a_killed_rank(tmp_path: Path, images: Path) -> None:
    run = Run(prepare(tmp_path / "run", data=images, **(LONG | {"num_workers": 2})))
    run.wait_for_step(2)
    run.rank_process(0).kill()
    assert fail(run).rank == 0


def test_a_loader_process_killed_from_outside_is_told(tmp_path: Path, images: Path) -> None:
    run = Run(prepare(tmp_path / "run", data=images, **(LONG | {"num_workers": 1})))
    run.wait_for_step(2)
    rank = run.rank_process(1)
    loaders = [child for child in rank.children() if "trainer.rank" in child.cmdline()]
    loaders[0].kill()
    error = fail(run)
    assert (error.rank, error.cause) == (1, Cause.KILLED_BY_SIGNAL), error
    assert "loader" in error.message.lower()


def test_a_loss_that_is_not_finite_ends_the_run_with_its_step_and_spares_the_checkpoints(
    tmp_path: Path, images: Path
) -> None:
    run_dir = prepare(tmp_path / "run", data=images, epochs=20, batch=8, lr=1e6, save_every=1)
    error = fail(Run(run_dir))
    assert error.cause is Cause.NON_FINITE_LOSS
    assert "step" in error.message
    assert "rank" in error.message
    for saved in (record for record in records(run_dir) if isinstance(record, CheckpointSaved)):
        if (run_dir.path / saved.path).exists():
            weights = torch.load(run_dir.path / saved.path, weights_only=True)["model"]
            assert all(tensor.isfinite().all() for tensor in weights.values())


def test_an_unknown_model_is_an_error_that_offers_the_nearest(tmp_path: Path, images: Path) -> None:
    error = fail(Run(prepare(tmp_path / "run", data=images, ranks=1, model="resnet81")), status=EXIT_USAGE)
    assert error.cause is Cause.CONFIG
    assert "resnet18" in error.message


def test_a_batch_that_does_not_divide_is_refused_before_any_rank_starts(tmp_path: Path, images: Path) -> None:
    run_dir = prepare(tmp_path / "run", data=images, ranks=3, batch=10)
    error = fail(Run(run_dir), status=EXIT_USAGE)
    assert error.cause is Cause.CONFIG
    assert "9 or 12" in error.message
    assert not list(run_dir.ranks.iterdir())


def test_a_run_configuration_that_is_none_is_refused(tmp_path: Path) -> None:
    run_dir = RunDir(tmp_path / "run")
    run_dir.path.mkdir()
    run_dir.config.write_text('{"train": {"model": "resnet18", "data": "digits", "epoch": 3}, "devices": ["cpu"]}')
    error = fail(Run(run_dir), status=EXIT_USAGE)
    assert error.cause is Cause.CONFIG
    assert "epoch" in error.message


def test_a_device_that_the_host_lacks_is_named(tmp_path: Path, images: Path) -> None:
    run_dir = prepare(tmp_path / "run", data=images, ranks=1)
    config = run_dir.read_config()
    run_dir.create(config.model_copy(update={"devices": ("cuda:99",)}))
    error = fail(Run(run_dir), status=EXIT_USAGE)
    assert error.cause is Cause.CONFIG
    assert "cuda:99" in error.message


def test_a_corrupt_checkpoint_to_continue_from_is_named(tmp_path: Path, images: Path) -> None:
    (tmp_path / "broken.pt").write_bytes(b"PK\x03\x04 not really")
    error = fail(Run(prepare(tmp_path / "run", data=images, ranks=1, resume=tmp_path / "broken.pt")))
    assert error.cause is Cause.CHECKPOINT
    assert "broken.pt" in error.message


def test_a_run_directory_in_use_is_refused_and_left_alone(tmp_path: Path, images: Path) -> None:
    run = Run(prepare(tmp_path / "run", data=images, **LONG))
    run.wait_for_step(2)
    assert Run(run.run_dir).wait() == EXIT_USAGE
    assert run.run_dir.read_error() is None
    assert run.process.poll() is None
    run.process.terminate()
    run.wait()
    assert not [record for record in records(run.run_dir) if isinstance(record, Completed)]
