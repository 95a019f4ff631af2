"""Which samples a run trains on, as the model sees them."""

from pathlib import Path
from typing import Any

import pytest

from tests.distributed.recording import RecordingModel, recorded
from tests.distributed.runs import RUN_S, Run, prepare, records, wait_until_gone
from tests.waiting import wait_until
from trainer.caller import Call, pack, write_call
from trainer.journal import Started
from trainer.run_dir import RunDir


@pytest.mark.timeout(300)
def test_a_run_killed_in_epoch_2_continues_with_exactly_the_samples_that_were_left_in_their_order(
    tmp_path: Path, images: Path
) -> None:
    undisturbed, killed, continued = (tmp_path / name for name in ("undisturbed", "killed", "continued"))
    Run(prepare_recorded(tmp_path / "whole", undisturbed, images)).succeed()
    run_dir = prepare_recorded(tmp_path / "run", killed, images, stuck_at=9)  # six steps in an epoch
    run = Run(run_dir)
    wait_until(lambda: saved_step(run_dir) == 9, timeout_s=RUN_S, what=lambda: f"step 9\n{run.output()}")
    run.kill()
    wait_until_gone(run_dir, timeout_s=10)
    hand_over(run_dir, continued)
    Run(run_dir).succeed()

    assert [record.resumed_step for record in records(run_dir) if isinstance(record, Started)] == [None, 9]
    whole = recorded(undisturbed)
    assert [len(batches) for batches in whole] == [18, 18]
    assert recorded(continued) == [batches[9:] for batches in whole]
    assert recorded(killed) == [batches[:9] for batches in whole]


def saved_step(run_dir: RunDir) -> int | None:
    saved = run_dir.last_checkpoint()
    return saved.step if saved is not None else None


def prepare_recorded(path: Path, folder: Path, images: Path, *, stuck_at: int | None = None) -> RunDir:
    """Make a run directory for a run whose model writes into `folder` what it sees."""
    options: dict[str, Any] = {"epochs": 3, "batch": 8, "save_every": 1, "augment": ["random_crop", "horizontal_flip"]}
    run_dir = prepare(path, data=images, call=True, model="RecordingModel", num_workers=1, **options)
    hand_over(run_dir, folder, stuck_at=stuck_at)
    return run_dir


def hand_over(run_dir: RunDir, folder: Path, *, stuck_at: int | None = None) -> None:
    folder.mkdir()
    write_call(run_dir, pack(Call(RecordingModel(folder, image_size=32, classes=2, stuck_at=stuck_at), ())))
