"""Runs that are stopped, killed and continued: the model is the one that the undisturbed run trains, bit for bit."""

import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.distributed.runs import (
    Run,
    best_checkpoint,
    draw_images,
    largest_difference,
    last_weights,
    metrics,
    prepare,
    processes_of,
    records,
)
from trainer.errors import Cause
from trainer.journal import CheckpointSaved, Started
from trainer.run_dir import EXIT_FAILED, EXIT_INTERRUPTED, GRACE_VARIABLE, RunDir

LONG: dict[str, Any] = {"epochs": 4, "batch": 4, "save_every": 4, "log_every": 1, "num_workers": 1}
"""Eleven steps in each of four epochs."""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, images: Path) -> RunDir:
    return Run(prepare(tmp_path_factory.mktemp("undisturbed") / "run", data=images, **LONG)).succeed()


def assert_same_model(one: RunDir, other: RunDir) -> None:
    ours, theirs = last_weights(one), last_weights(other)
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert ours.keys() == theirs.keys()


def newest(run_dir: RunDir) -> Path:
    """The checkpoint to continue from."""
    saved = run_dir.last_checkpoint()
    assert saved is not None
    return run_dir.path / saved.path


@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_run_saves_its_exact_step_and_continues_to_the_undisturbed_weights(
    number: signal.Signals, tmp_path: Path, images: Path, undisturbed: RunDir
) -> None:
    stopped = Run(prepare(tmp_path / "first", data=images, **LONG))
    stopped.wait_for_step(14)
    stopped.process.send_signal(number)
    assert stopped.wait() == EXIT_INTERRUPTED, stopped.output()
    error = stopped.run_dir.read_error()
    assert error is not None
    assert error.cause is Cause.INTERRUPTED
    assert stopped.run_dir.completed() is None
    saved = stopped.run_dir.last_checkpoint()
    assert saved is not None
    assert saved.step >= 14
    assert saved.path in error.message
    assert not processes_of(stopped.run_dir)

    again = prepare(tmp_path / "second", data=images, resume=stopped.run_dir.path / saved.path, **LONG)
    Run(again).succeed()
    started = next(record for record in records(again) if isinstance(record, Started))
    assert started.resumed_step == saved.step
    assert_same_model(again, undisturbed)
    assert metrics(stopped.run_dir, again) == metrics(undisturbed)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_run_asked_to_stop_while_it_starts_is_interrupted_at_once(
    number: signal.Signals, tmp_path: Path, images: Path
) -> None:
    run = Run(prepare(tmp_path / "run", data=images, **LONG))
    run.wait_for_ranks(2)
    run.process.send_signal(number)
    assert run.wait(20) == EXIT_INTERRUPTED, run.output()
    error = run.run_dir.read_error()
    assert error is not None
    assert error.cause is Cause.INTERRUPTED
    assert not processes_of(run.run_dir)


@pytest.mark.timeout(300)
def test_a_run_stopped_during_evaluation_only_evaluates_when_it_is_continued(tmp_path: Path) -> None:
    images = draw_images(tmp_path / "images", train=8, val=3000)
    options: dict[str, Any] = {"data": images, "epochs": 1, "batch": 8, "log_every": 1}
    run = Run(prepare(tmp_path / "run", **options))
    run.wait_for_step(1)  # the only step: what follows is an evaluation of 375 batches on each rank
    run.process.terminate()
    assert run.wait() == EXIT_INTERRUPTED, run.output()
    saved = run.run_dir.last_checkpoint()
    assert saved is not None
    assert (saved.step, saved.epoch) == (1, 0)
    again = Run(prepare(tmp_path / "again", ranks=1, resume=run.run_dir.path / saved.path, **options)).succeed()
    assert_same_model(again, run.run_dir)
    assert {step: values.keys() for step, values in metrics(again).items()} == {1: {"val/loss", "val/accuracy"}}


@pytest.mark.timeout(300)
def test_a_second_signal_ends_a_run_whose_ranks_do_not_stop(tmp_path: Path, images: Path) -> None:
    run = Run(prepare(tmp_path / "run", data=images, **LONG))
    run.wait_for_step(1)
    run.rank_process(1).suspend()
    run.process.terminate()
    with pytest.raises(AssertionError, match="still going on"):
        run.wait(1)
    run.process.terminate()
    assert run.wait(20) == EXIT_INTERRUPTED, run.output()
    assert not processes_of(run.run_dir)


def test_a_grace_period_ends_a_run_whose_ranks_do_not_stop(tmp_path: Path, images: Path) -> None:
    run = Run(prepare(tmp_path / "run", data=images, **LONG), **{GRACE_VARIABLE: "1"})
    run.wait_for_step(1)
    run.rank_process(1).suspend()
    run.process.terminate()
    assert run.wait(20) == EXIT_INTERRUPTED, run.output()
    assert not processes_of(run.run_dir)


@pytest.mark.timeout(300)
def test_a_continued_run_keeps_the_best_of_the_earlier_attempt_as_a_file_of_its_own(
    tmp_path: Path, images: Path, undisturbed: RunDir
) -> None:
    last = undisturbed.last_checkpoint()
    assert last is not None
    options = LONG | {"epochs": 5, "schedule": "constant", "lr": 1e-9}  # an epoch more, in which nothing gets better
    resume = undisturbed.path / last.path
    again = Run(prepare(tmp_path / "run", ranks=1, data=images, resume=resume, **options)).succeed()
    ours = torch.load(best_checkpoint(again), weights_only=True)
    theirs = torch.load(best_checkpoint(undisturbed), weights_only=True)
    assert ours["metric"] >= theirs["metric"]
    assert next(record.best for record in records(again) if isinstance(record, CheckpointSaved))


@pytest.mark.timeout(300)
def test_a_checkpoint_brought_alone_to_another_folder_is_continued_from(
    tmp_path: Path, images: Path, undisturbed: RunDir
) -> None:
    last = undisturbed.last_checkpoint()
    assert last is not None
    shutil.copy(undisturbed.path / last.path, tmp_path / "model.pt")
    again = Run(prepare(tmp_path / "run", ranks=1, data=images, resume=tmp_path / "model.pt", **LONG)).succeed()
    completed, theirs = again.completed(), undisturbed.completed()
    assert completed is not None
    assert theirs is not None
    assert best_checkpoint(again).is_file()
    assert completed.values == theirs.values


@pytest.mark.timeout(300)
def test_a_run_goes_from_two_ranks_to_one_to_four_in_the_middle_of_epochs(tmp_path: Path, images: Path) -> None:
    options: dict[str, Any] = {"data": images, "epochs": 3, "batch": 8, "log_every": 1, "ema": 0.9, "nbs": 16}
    options |= {"augment": ["random_crop", "horizontal_flip"]}
    undisturbed = Run(prepare(tmp_path / "undisturbed", ranks=1, **options)).succeed()  # three steps in each epoch
    first = Run(prepare(tmp_path / "first", max_steps=4, **options)).succeed()
    second = Run(prepare(tmp_path / "second", ranks=1, resume=newest(first), max_steps=8, **options)).succeed()
    last = Run(prepare(tmp_path / "last", ranks=4, resume=newest(second), **options)).succeed()
    started = [next(record for record in records(part) if isinstance(record, Started)) for part in (second, last)]
    assert [(each.world_size, each.resumed_step) for each in started] == [(1, 4), (4, 8)]
    for part in ("model", "unaveraged"):
        assert largest_difference(last_weights(last, part), last_weights(undisturbed, part)) <= 1e-5
    together = metrics(first, second, last)
    assert together.keys() == metrics(undisturbed).keys()
    for step, values in metrics(undisturbed).items():
        assert together[step] == pytest.approx(values, abs=1e-5)


@pytest.mark.timeout(300)
def test_three_ranks_whose_gradients_fill_several_buckets_continue_to_the_undisturbed_weights(
    tmp_path: Path, images: Path
) -> None:
    """DDP sorts its buckets after a first step; three numbers add up to other last bits in another order."""
    options: dict[str, Any] = {"data": images, "ranks": 3, "model": "resnet18", "dropout": None, "epochs": 1}
    options |= {"batch": 6, "nbs": 12, "log_every": 1}  # the step that is continued with accumulates two batches
    undisturbed = Run(prepare(tmp_path / "undisturbed", save_every=2, **options)).succeed()
    on_its_way = undisturbed.checkpoints / "step-00000002.pt"
    last = Run(prepare(tmp_path / "last", resume=on_its_way, **options)).succeed()
    started = records(last)[0]
    assert isinstance(started, Started)
    assert (started.resumed_step, started.total_steps) == (2, 4)
    assert_same_model(last, undisturbed)
    assert metrics(last).keys() == {3, 4}
    assert metrics(undisturbed, last) == metrics(undisturbed)


@pytest.mark.timeout(300)
def test_a_run_continues_on_samples_that_moved_and_not_on_others(tmp_path: Path) -> None:
    split = draw_images(tmp_path / "drawn", train=20, val=1)
    images = (split / "train").rename(tmp_path / "images")  # no split of its own: val_fraction decides
    options: dict[str, Any] = {"ranks": 1, "epochs": 1, "batch": 9, "val_fraction": 0.1}
    first = Run(prepare(tmp_path / "first", data=images, **options)).succeed()
    saved = first.last_checkpoint()
    assert saved is not None
    options |= {"resume": first.path / saved.path, "epochs": 2}
    moved = images.rename(tmp_path / "moved")

    Run(prepare(tmp_path / "moved-data", data=moved, **options)).succeed()

    for changes, complaint in (
        ({"val_fraction": 0.2}, "val_fraction=0.1, and this run has val_fraction=0.2"),
        ({"data": draw_images(tmp_path / "more", train=18, val=2)}, f"data={str(images)!r}, and this run has data="),
    ):
        run = Run(prepare(tmp_path / f"other-{next(iter(changes))}", **({"data": moved} | options | changes)))
        assert run.wait() == EXIT_FAILED, run.output()
        error = run.run_dir.read_error()
        assert error is not None
        assert error.cause is Cause.CHECKPOINT
        assert complaint in error.message
    (moved / "class0" / "0000.png").rename(moved / "class0" / "renamed.png")
    run = Run(prepare(tmp_path / "renamed", data=moved, **options))
    assert run.wait() == EXIT_FAILED, run.output()
