"""The page of training options: made from the options' own docstrings, ranges and defaults."""

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest

from trainer.config import TrainConfig
from trainer.options_page import render
from trainer.train_file import TrainFile

PAGE = Path(__file__).parents[2] / "docs" / "training-options.md"
LAUNCH_FIELDS = [field.name for field in dataclasses.fields(TrainFile) if field.name != "train"]


def test_the_page_of_options_is_what_the_code_says() -> None:
    assert PAGE.read_text() == render(), "make it anew: python -m trainer.options_page > docs/training-options.md"


def test_the_page_can_be_made_from_the_command_line() -> None:
    answer = subprocess.run([sys.executable, "-m", "trainer.options_page"], capture_output=True, text=True, check=True)

    assert answer.stdout == render()


@pytest.mark.parametrize("name", [*LAUNCH_FIELDS, *TrainConfig.model_fields])
def test_every_option_says_what_it_may_be_and_what_it_means(name: str) -> None:
    row = next(line for line in render().splitlines() if line.startswith(f"| `{name}` |"))
    _, _, values, default, meaning, _ = row.replace("\\|", "/").split("|")

    assert values.strip()
    assert default.strip()
    assert meaning.strip().endswith(".")


def test_ranges_choices_and_defaults_are_those_that_are_checked() -> None:
    page = render()

    assert "| `epochs` | whole number from 1 to 1000000 | `10` |" in page
    assert "| `nproc_per_node` | whole number from 1 to 1024 |" in page
    assert "| `node_rank` | whole number from 0 to 1023 |" in page
    assert "| `batch` | whole number from -1 to 1000000, but not 0 | `64` |" in page
    assert "| `lr` | number above 0 to 1000000 | `0.1` |" in page
    assert "| `clip_norm` | number above 0 |" in page
    assert "| `strategy` | `ddp` or `dp` or `single` | `ddp` |" in page
    assert "| `model` | text | to be given |" in page
    assert "| `sync_bn` | `true` or `false` | none |" in page
    assert "| `compile` | `true` or `false` | `false` |" in page
