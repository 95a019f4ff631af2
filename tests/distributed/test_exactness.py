"""N ranks train the same model as one."""

import hashlib
import socket
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.distributed.runs import Run, draw_images, epochs, largest_difference, last_weights, metrics, prepare, records
from trainer.journal import CheckpointSaved, Completed, Log, Started


@pytest.mark.timeout(300)
def test_one_and_two_ranks_train_the_same_weights_and_measure_the_same(tmp_path: Path, images: Path) -> None:
    options: dict[str, Any] = {"data": images, "epochs": 1, "batch": 8, "log_every": 1}
    alone = Run(prepare(tmp_path / "1", ranks=1, **options)).succeed()
    two = Run(prepare(tmp_path / "2", ranks=2, **options)).succeed()
    assert largest_difference(last_weights(alone), last_weights(two)) <= 1e-5
    assert metrics(two).keys() == metrics(alone).keys()
    for step, values in metrics(alone).items():
        assert metrics(two)[step] == pytest.approx(values, abs=1e-5)
    assert len(metrics(alone)) == 6  # five batches of 8 and one of a single image, which the second rank has no part in


@pytest.mark.timeout(300)
def test_accumulated_mixed_averaged_clipped_and_partly_frozen_training_is_the_same_on_one_two_and_four_ranks(
    tmp_path: Path, images: Path
) -> None:
    options: dict[str, Any] = {"data": images, "epochs": 2, "batch": 8, "nbs": 16, "log_every": 1, "ema": 0.9}
    options |= {"augment": ["random_crop", "horizontal_flip"], "num_workers": 1}
    options |= {"options": {"mixup": 0.2, "cutmix": 1.0, "randaugment": 5, "label_smoothing": 0.1}}
    options |= {"schedule": "one_cycle", "warmup_epochs": 0.7, "clip_norm": 0.1, "freeze": ["features.0", "features.3"]}
    alone = Run(prepare(tmp_path / "1", ranks=1, **options)).succeed()
    two = Run(prepare(tmp_path / "2", ranks=2, **options)).succeed()
    four = Run(prepare(tmp_path / "4", ranks=4, **options)).succeed()
    started = records(alone)[0]
    assert isinstance(started, Started)
    # Batches of 8, 8 | 8, 8 | 8, 1: the last group has the image that most ranks have no part in.
    assert (started.accumulate, started.steps_per_epoch, started.total_steps) == (2, 3, 6)
    for together in (two, four):
        for part in ("model", "unaveraged"):
            assert largest_difference(last_weights(alone, part), last_weights(together, part)) <= 1e-5
        for step, values in metrics(alone).items():
            assert metrics(together)[step] == pytest.approx(values, abs=1e-5)
    assert largest_difference(last_weights(alone, "model"), last_weights(alone, "unaveraged")) > 1e-5
    norms = [values["train/grad_norm"] for values in metrics(alone).values() if "train/grad_norm" in values]
    assert min(norm for norm in norms if norm is not None) > 0.1  # each was limited
    # What is frozen is the average of itself.
    trained, averaged = last_weights(alone, "unaveraged"), last_weights(alone, "model")
    still = {name.rpartition(".")[0] for name in trained if torch.allclose(trained[name], averaged[name], rtol=1e-6)}
    assert {"features.0", "features.3.squeeze", "features.3.expand1x1", "features.3.expand3x3"} <= still
    assert "features.4.squeeze" not in still


def test_batchnorm_of_a_frozen_part_keeps_its_statistics_and_the_rest_follows_the_batches(
    tmp_path: Path, images: Path
) -> None:
    options: dict[str, Any] = {"model": "resnet18", "dropout": None, "freeze": ["conv1", "bn1", "layer1"]}
    two = Run(prepare(tmp_path / "2", data=images, epochs=2, batch=20, max_steps=4, **options)).succeed()
    weights = last_weights(two)
    assert weights["bn1.running_mean"].count_nonzero() == 0  # as it was made
    batches = {name: count.item() for name, count in weights.items() if name.endswith("num_batches_tracked")}
    frozen = {name for name in batches if name.startswith(("bn1", "layer1"))}
    assert {batches[name] for name in frozen} == {0}
    assert {batches[name] for name in batches.keys() - frozen} == {4}  # the second epoch is trained as the first


def test_a_run_tells_what_it_did_in_its_journal_and_its_checkpoint_matches(tmp_path: Path, images: Path) -> None:
    with socket.create_server(("127.0.0.1", 29500)) if _is_free(29500) else socket.socket():
        run_dir = Run(prepare(tmp_path / "run", data=images, epochs=2, batch=8, log_every=2)).succeed()
    journal = records(run_dir)
    assert [record.seq for record in journal] == list(range(len(journal)))
    started, completed = journal[0], journal[-1]
    assert isinstance(started, Started)
    assert (started.world_size, started.batch_per_rank, started.steps_per_epoch, started.total_steps) == (2, 4, 6, 12)
    assert isinstance(completed, Completed)
    assert (completed.step, completed.epoch) == (12, 2)
    assert [epoch.values.keys() for epoch in epochs(run_dir)] == [{"val/loss", "val/accuracy"}] * 2
    saved = [record for record in journal if isinstance(record, CheckpointSaved)]
    assert [(record.step, record.epoch) for record in saved] == [(6, 1), (12, 2)]
    kept = {record.path for record in saved} - {path for record in saved for path in record.removed}
    assert kept == {f"checkpoints/{path.name}" for path in run_dir.checkpoints.iterdir()}
    assert completed.best_checkpoint in kept
    last = run_dir.path / saved[-1].path
    assert hashlib.sha256(last.read_bytes()).hexdigest() == saved[-1].sha256
    assert last.stat().st_size == saved[-1].size_bytes
    checkpoint = torch.load(last, weights_only=True)
    assert not [name for name in checkpoint["model"] if name.startswith("module.")]
    assert checkpoint["class_names"] == ("class0", "class1")
    for rank in (0, 1):
        progress = run_dir.read_progress(rank)
        assert progress is not None
        assert (progress.phase, progress.step) == ("finished", 12)


def test_five_images_on_two_ranks_with_batchnorm_finish_by_the_stated_policy(tmp_path: Path) -> None:
    images = draw_images(tmp_path / "images", train=5, val=1)
    run_dir = prepare(tmp_path / "run", data=images, epochs=2, batch=4, model="resnet18", dropout=None)
    Run(run_dir).succeed()
    started = records(run_dir)[0]
    assert isinstance(started, Started)
    assert started.steps_per_epoch == 1
    assert any("BatchNorm" in record.message for record in records(run_dir) if isinstance(record, Log))
    # One validation image and two ranks: it is counted once.
    assert {epoch.values["val/accuracy"] for epoch in epochs(run_dir)} <= {0.0, 1.0}


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0
