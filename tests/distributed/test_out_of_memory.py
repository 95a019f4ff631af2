"""A device that runs out of memory in the middle of a run: the run goes on, in smaller parts of the same batch."""

import sys
from pathlib import Path

import torch

from tests.distributed.runs import largest_difference, last_weights, metrics, records, start
from trainer.journal import Log, Started
from trainer.run_dir import RunDir

SCRIPT = """
import os, sys
import torch
from torch import nn
from trainer import train


class Small(nn.Module):
    # From its sixth step on, the second of the second epoch, the device of rank 1 has memory for three samples only.
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 4, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(16, 2)
        ).double()
        self.calls = 0

    def forward(self, images):
        self.calls += self.training
        if self.training and self.calls > 5 and len(images) > 3 and os.environ["RANK"] == "1":
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.")
        return self.layers(images.double())


if __name__ == "__main__":
    torch.manual_seed(3)
    ranks, data = int(sys.argv[1]), sys.argv[2]
    options = {"image_size": 16, "batch": 12, "epochs": 2, "lr": 0.05, "num_workers": 0, "device": "cpu"}
    train(model=Small(), data=data, nproc_per_node=ranks, output=f"run-{ranks}", **options)
"""


def test_a_run_that_runs_out_of_memory_goes_on_in_smaller_parts_and_ends_with_the_same_weights(
    tmp_path: Path, images: Path
) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    for ranks in ("1", "2"):
        trained = start(sys.executable, "script.py", ranks, str(images), folder=tmp_path)
        assert trained.returncode == 0, trained.stderr
    undisturbed, disturbed = RunDir(tmp_path / "run-1"), RunDir(tmp_path / "run-2")

    first, second = [record for record in records(disturbed) if isinstance(record, Started)]
    assert (first.batch, first.batch_per_rank, first.accumulate, first.micro_batches) == (12, 6, 1, 1)
    assert (second.batch, second.batch_per_rank, second.accumulate, second.micro_batches) == (12, 6, 1, 2)
    assert second.steps_per_epoch == first.steps_per_epoch == 4
    assert second.resumed_step == 4
    warnings = [
        record.message for record in records(disturbed) if isinstance(record, Log) and record.level == "warning"
    ]
    assert warnings == [
        "rank 1: OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB: the ranks start anew from step 4 "
        "(step 5 had been reached) and go on with the same batch of 12 in 2 parts, 3 samples on each device at a time, "
        "whose gradients are added up",
        "each batch of 12 is computed in 2 parts of 6, to spare memory",
    ]
    assert disturbed.read_config().micro_batches == 2
    assert not disturbed.error.exists()
    assert metrics(disturbed).keys() == metrics(undisturbed).keys()
    assert all(weight.dtype == torch.float64 for weight in last_weights(disturbed).values())
    assert largest_difference(last_weights(disturbed), last_weights(undisturbed)) < 1e-12
