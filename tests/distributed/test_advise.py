"""`python -m trainer advise`: what it measures of a train.yaml, and what it says."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.distributed.runs import RUN_S
from trainer.advice import advise
from trainer.errors import ConfigError
from trainer.probing import probe
from trainer.run_dir import RunDir
from trainer.train_file import TrainFile

RECIPE = '''
"""Recipes that take their time: `slow-input` for each sample that is loaded, `slow-step` for each forward pass."""

import time

import torch
from torch import nn

from trainer.recipes.recipe import Evaluation, Quantity, RecipeOptions, TaskData


class Samples(torch.utils.data.Dataset):
    def __init__(self, count, pause_s):
        self.count, self.pause_s = count, pause_s

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        time.sleep(self.pause_s)
        return torch.ones(2)


class Network(nn.Module):
    def __init__(self, pause_s):
        super().__init__()
        self.layer, self.pause_s = nn.Linear(2, 1), pause_s

    def forward(self, values):
        time.sleep(self.pause_s)
        return self.layer(values)


class SlowInput:
    name = "slow-input"
    description = "A loader that takes its time"
    best_metric, tie_metric = "val/accuracy", "val/loss"
    spawnable, sync_bn_default = True, False
    options_model = RecipeOptions
    load_s, step_s = 0.02, 0.0

    def __init__(self, config):
        self.config = config

    @classmethod
    def models(cls):
        return ["line"]

    def build_data(self, group):
        return TaskData(train=Samples(9, self.load_s), val=Samples(3, self.load_s), samples="ones")

    def build_model(self, data):
        return Network(self.step_s)

    def check_model(self, model, data): ...

    def loss(self, model, batch):
        return model(batch).square().mean()

    def quantities(self, data):
        return (Quantity("loss"),)

    def measure(self, model, batch):
        return {"loss": model(batch)[:, 0]}

    def summarize(self, totals, count, data):
        return Evaluation({"val/loss": totals["loss"].item(), "val/accuracy": 1.0})


class SlowStep(SlowInput):
    name = "slow-step"
    load_s, step_s = 0.0, 0.05
'''
FIELDS: dict[str, Any] = {"model": "line", "data": "./", "batch": 2, "nbs": 4, "num_workers": 0, "device": "cpu"}


@pytest.fixture
def recipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the two recipes, as pip would install them."""
    (tmp_path / "slow_recipes.py").write_text(RECIPE)
    metadata = tmp_path / "slow-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: slow\nVersion: 1.0\n")
    entries = "slow-input = slow_recipes:SlowInput\nslow-step = slow_recipes:SlowStep\n"
    (metadata / "entry_points.txt").write_text(f"[rankzero.recipes]\n{entries}")
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_a_training_that_waits_for_its_input_is_told_so_with_its_pace_batch_and_learning_rate(
    recipes: Path, tmp_path: Path
) -> None:
    (tmp_path / "train.yaml").write_text(yaml.safe_dump(FIELDS | {"recipe": "slow-input", "lr": 5}))
    (tmp_path / "tmp").mkdir()
    told = subprocess.run(
        [sys.executable, "-m", "trainer", "advise", "train.yaml", "--steps", "8"],
        cwd=tmp_path,
        env=os.environ
        | {"OMP_NUM_THREADS": "1", "PYTHONPATH": f"{recipes}:{Path.cwd()}", "TMPDIR": str(tmp_path / "tmp")},
        capture_output=True,
        text=True,
        timeout=RUN_S,
        check=False,
    )

    assert told.returncode == 0, told.stderr
    assert "Effective batch: 4 samples in an optimizer step (2 batches of 2), on any number of ranks." in told.stdout
    paces = re.findall(r"(\d) ranks? +([\d.]+) (ms|s) a step, .* an epoch; measured", told.stdout)
    seconds = {int(ranks): float(value) * (0.001 if unit == "ms" else 1) for ranks, value, unit in paces}
    assert set(seconds) == {1, 2}
    assert seconds[1] >= 4 * 0.02  # the samples of a step, one after the other
    assert seconds[2] >= 2 * 0.02
    assert "4 ranks  not measured: batch 2 does not divide among 4 ranks" in told.stdout
    assert "Input: the training waits for it (input-bound)" in told.stdout
    assert "- yours is 3.2e+03 times that" in told.stdout
    assert list((tmp_path / "tmp").glob("rankzero-*")) == []


def test_a_training_with_a_slow_step_is_not_bound_by_its_input(recipes: Path) -> None:
    config = TrainFile.of(FIELDS | {"recipe": "slow-step", "data": str(recipes)}).run_config()

    timings = probe(config, RunDir(recipes / "none"))

    assert timings.samples == 9
    assert timings.compute_s >= 2 * 0.05  # two batches, each a forward pass
    assert timings.load_s < timings.compute_s
    assert timings.val_s >= 2 * 0.05


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"recipe": "script", "options": {"script": "train.py"}}, "there are no steps of it to measure"),
        ({"model": "resnet18", "data": "digits", "strategy": "dp"}, "leave strategy out"),
    ],
)
def test_what_there_is_nothing_to_say_of_is_refused_before_anything_runs(
    fields: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ConfigError, match=complaint):
        advise(TrainFile.of(fields | {"device": "cpu"}), (1, 2), steps=2)
