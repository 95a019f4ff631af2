"""Runs on a real GPU, which are left out on a machine without one."""

import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.distributed.runs import epochs, records, start, write_train_file
from trainer.journal import Log, Started
from trainer.run_dir import RunDir

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU: trains on it")

DIGITS: dict[str, Any] = {"model": "resnet18", "data": "digits", "dropout": None, "epochs": 4, "batch": 64, "lr": 0.02}
LEFT_FREE_BYTES = 6 * 10**9


def train(folder: Path, **fields: object) -> RunDir:
    """Train on the first GPU, to success."""
    run_dir, file = RunDir(folder / "run"), write_train_file(folder, **fields)
    done = start(
        sys.executable, "-m", "trainer", str(file), "--device", "0", "--output", str(run_dir.path), folder=folder
    )
    assert done.returncode == 0, done.stderr
    return run_dir


def begun(run_dir: RunDir) -> list[Started]:
    return [record for record in records(run_dir) if isinstance(record, Started)]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"amp": "bf16", "channels_last": True, "cuda_graph": True},
        {"amp": "fp16", "clip_norm": 1.0},
    ],
    ids=["float32", "bf16 in NHWC by a graph", "fp16"],
)
def test_digits_are_learnt(options: dict[str, Any], tmp_path: Path) -> None:
    run_dir = train(tmp_path, **DIGITS, **options)
    assert begun(run_dir)[0].devices == ("cuda:0",)
    accuracy = epochs(run_dir)[-1].values["val/accuracy"]
    assert accuracy is not None
    assert accuracy > 0.9


def test_a_batch_that_its_memory_does_not_hold_is_computed_in_parts(tmp_path: Path) -> None:
    free, _ = torch.cuda.mem_get_info()
    taken = torch.empty(max(0, free - LEFT_FREE_BYTES), dtype=torch.uint8, device="cuda")
    try:
        # A sample takes some 90 MB: a batch of them takes more than there is, and a quarter of it less.
        options = {"synthetic": {"train": 256, "val": 8}}
        fields = {"model": "resnet50", "data": "synthetic", "options": options, "image_size": 224, "epochs": 1}
        run_dir = train(tmp_path, **fields, batch=128)
    finally:
        del taken
        torch.cuda.empty_cache()
    first, *_, last = begun(run_dir)
    assert (first.batch, first.micro_batches) == (128, 1)
    assert last.batch == 128
    assert last.micro_batches > 1
    warnings = [record.message for record in records(run_dir) if isinstance(record, Log) and record.level == "warning"]
    assert any("CUDA out of memory" in message and "the ranks start anew" in message for message in warnings)
