"""Which samples a run trains on, as the model sees them."""

from pathlib import Path
from typing import Any

import pytest

from tests.distributed.recording import RecordingModel, recorded
from tests.distributed.runs import Run, prepare, records, wait_until_gone
from trainer.caller import Call, pack, write_call
from trainer.journal import Started
from trainer.run_dir import RunDir


@pytest.mark.timeout(300)
def test_a_run_killed_in_epoch_2_continues_with_exactly_the_samples_that_were_left_in_their_order(
    tmp_path: Path, images: Path
) -> None:
    undisturbed, killed, continued = (tmp_path / name for name in ("undisturbed", "killed", "continued"))
    Run(prepare_recorded(tmp_path / "whole", undisturbed, images)).succeed()
    run_dir = prepare_recorded(tmp_path / "run", killed, images)
    run = Run(run_dir)
    run.wait_for_step(9)  # six steps in an epoch
    run.kill()
    wait_until_gone(run_dir, timeout_s=10)
    hand_over(run_dir, continued)
    Run(run_dir).succeed()

    resumed_step = [record.resumed_step for record in records(run_dir) if isinstance(record, Started)][-1]
    assert resumed_step is not None
    assert 6 < resumed_step < 12
    whole = recorded(undisturbed)
    assert [len(batches) for batches in whole] == [18, 18]
    assert recorded(continued) == [batches[resumed_step:] for batches in whole]
    for before, batches in zip(recorded(killed), whole, strict=True):
        assert before == batches[: len(before)]


def prepare_recorded(path: Path, folder: Path, images: Path) -> RunDir:
    """Make a run directory for a run whose model writes into `folder` what it sees."""
    options: dict[str, Any] = {"epochs": 3, "batch": 8, "save_every": 1, "augment": ["random_crop", "horizontal_flip"]}
    run_dir = prepare(path, data=images, call=True, model="RecordingModel", num_workers=1, **options)
    hand_over(run_dir, folder)
    return run_dir


def hand_over(run_dir: RunDir, folder: Path) -> None:
    folder.mkdir()
    write_call(run_dir, pack(Call(RecordingModel(folder, image_size=32, classes=2), ())))
