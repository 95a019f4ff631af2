"""Training in fp16, whose steps may be skipped, and that ends before its last epoch."""

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.distributed.overflowing import OverflowingModel
from tests.distributed.runs import Run, epochs, final_state, metrics, prepare, records
from trainer.caller import Call, pack, write_call
from trainer.checkpoints import load_checkpoint
from trainer.journal import Completed, Log
from trainer.run_dir import RunDir

OPTIONS: dict[str, Any] = {"epochs": 6, "batch": 8, "nbs": 16, "ema": 0.9, "amp": "fp16", "clip_norm": 1e-3}
OPTIONS |= {"schedule": "constant", "lr": 1e-4, "patience": 2, "log_every": 1}
"""Three steps of two batches in each epoch, at a rate that moves weights, and no image to another class."""


@pytest.mark.timeout(300)
def test_a_step_that_overflows_on_one_rank_is_skipped_on_all_and_an_early_end_survives_a_continuation(
    tmp_path: Path, images: Path
) -> None:
    whole = train(tmp_path / "whole", images, overflows_at=6)
    cut = train(tmp_path / "cut", images, overflows_at=6, max_steps=5)
    continued = train(tmp_path / "continued", images, resume=newest(cut))

    first, second = (weights_seen(tmp_path / "whole", rank) for rank in (0, 1))
    assert first == second
    before = [first[batch] for batch in range(0, len(first), 2)]  # each step's
    moved = [one != other for one, other in itertools.pairwise(before)]
    assert moved == [number != 3 for number in range(8)]  # but for the fourth step, whose first batch is number 6

    series = metrics(whole)
    assert [series[step]["train/skipped_steps"] for step in range(1, 10)] == [0, 0, 0, 1, 1, 1, 1, 1, 1]
    assert series[4]["train/grad_norm"] is None
    norms = [norm for step in series if (norm := series[step]["train/grad_norm"]) is not None]
    assert len(norms) == 8
    assert min(norms) > OPTIONS["clip_norm"]  # what is told is the norm before it is limited
    checkpoint = load_checkpoint(newest(whole))
    assert checkpoint.skipped_steps == 1
    assert checkpoint.scaler is not None
    assert checkpoint.scaler["scale"] == 2**15  # it was halved once

    assert [epoch.epoch for epoch in epochs(whole)] == [1, 2, 3]
    *_, told, completed = records(whole)
    assert isinstance(completed, Completed)
    assert (completed.epoch, completed.step) == (3, 9)
    assert isinstance(told, Log)
    assert "ends early, after 3 of 6 epochs: 2 in a row have not bettered val/accuracy" in told.message

    assert metrics(cut, continued) == series
    assert final_state(continued) == final_state(whole)
    ended = load_checkpoint(newest(continued))
    assert (ended.scaler, ended.skipped_steps, ended.stale_epochs) == (checkpoint.scaler, 1, 2)


def train(folder: Path, images: Path, *, overflows_at: int | None = None, **where: Any) -> RunDir:
    """Train on two ranks that write into `folder` what weights they see."""
    folder.mkdir()
    run_dir = prepare(folder / "run", data=images, call=True, model="OverflowingModel", **where, **OPTIONS)
    torch.manual_seed(0)
    write_call(run_dir, pack(Call(OverflowingModel(folder, image_size=32, overflows_at=overflows_at), ())))
    return Run(run_dir).succeed()


def weights_seen(folder: Path, rank: int) -> list[str]:
    return (folder / f"rank-{rank}").read_text().splitlines()


def newest(run_dir: RunDir) -> Path:
    saved = run_dir.last_checkpoint()
    assert saved is not None
    return run_dir.path / saved.path
