"""Segmentation and detection on two ranks: the model that one trains."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.distributed.runs import start, write_train_file
from tests.shapes import write_coco, write_voc

SMALL: dict[str, Any] = {"dropout": None, "image_size": 64, "batch": 4, "epochs": 1}


@pytest.mark.parametrize(
    ("recipe", "options"),
    [
        ("segmentation", {"model": "lraspp_mobilenet_v3_large", "augment": ["random_crop", "horizontal_flip"]}),
        # Of the detectors it has the most that could differ: what it samples at random.
        ("detection", {"model": "fasterrcnn_mobilenet_v3_large_320_fpn", "augment": ["horizontal_flip"], "lr": 0.001}),
    ],
)
def test_two_ranks_train_the_model_of_one(recipe: str, options: dict[str, Any], tmp_path: Path) -> None:
    """In float64, with a last batch of three samples."""
    write = write_voc if recipe == "segmentation" else write_coco
    data = write(tmp_path / "data", train=7, val=1)
    file = write_train_file(tmp_path, **SMALL | options | {"recipe": recipe, "data": str(data)})
    proof = ["--world-sizes", "1,2", "--steps", "2", "--tolerance", "1e-9"]
    found = start(sys.executable, "-m", "trainer", "parity", str(file), "--device", "cpu", *proof, folder=tmp_path)
    assert found.returncode == 0, found.stdout + found.stderr
    assert "The same to 1e-09 on 1, 2 ranks" in found.stdout
    moved = re.search(r"weights moved by up to (\S+)\.", found.stdout)
    assert moved is not None, found.stdout
    assert float(moved[1]) > 1e-4
