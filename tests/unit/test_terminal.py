"""A run as people watch it on a terminal: what is seen of it at 80 columns."""

import io
import re
import sys
from pathlib import Path

import pytest

from trainer.config import TrainConfig
from trainer.journal import EpochEnd, JournalWriter, Metrics, Started
from trainer.run_dir import RunConfig, RunDir
from trainer.terminal import RunDisplay

METRICS = {"train/loss": 2.302585, "train/lr": 0.0123456, "train/images_per_s": 12345.6, "train/grad_norm": 3.14159}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def run_dir(tmp_path: Path) -> RunDir:
    made = RunDir(tmp_path)
    made.create(RunConfig(train=TrainConfig(model="resnet18", data="digits"), devices=("cpu",)))
    JournalWriter(made.journal).append(Started, world_size=1, devices=("cpu",), epochs=4, total_steps=40_000)
    return made


def shown(run_dir: RunDir, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What 80 columns get to see, without the sequences that colour it and move the cursor."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with RunDisplay(run_dir) as display:
        display._offset = 0  # it begins behind what is there
        display.update()
    return re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.getvalue()))


def test_where_80_columns_are_too_few_the_metrics_are_cut_and_not_the_count_or_the_time(
    run_dir: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    JournalWriter(run_dir.journal).append(Metrics, step=12_345, epoch=2, values=METRICS)
    bar = next(line for line in reversed(shown(run_dir, monkeypatch)) if line.startswith("training"))
    assert len(bar) == 80
    assert re.search(r"12345/40000 loss 2\.303  lr 0\.01235  \w+… -:--:--$", bar), bar


def test_a_metric_may_have_any_name(run_dir: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    JournalWriter(run_dir.journal).append(Metrics, step=1, epoch=1, values={"iou[/cat]": 0.5})
    JournalWriter(run_dir.journal).append(EpochEnd, epoch=1, step=1, seconds=1.0, values={"iou[/cat]": 0.5})
    lines = shown(run_dir, monkeypatch)
    assert "epoch 1/4  iou[/cat] 0.5000  1.0 s" in [line.rstrip() for line in lines]
    assert any("1/40000 iou[/cat] 0.5" in line for line in lines)
