"""Each recipe learns, as a job: posted over HTTP, trained on two CPU ranks, its metrics and checkpoint read back.

The data sets are small, and so are the figures that have to be reached; all are far above what guessing has.
"""

from pathlib import Path
from typing import Any

import pytest

from rankzero.client import Client
from tests.shapes import write_coco, write_voc

pytestmark = pytest.mark.timeout(300)

SHARED: dict[str, Any] = {"batch": 8, "optimizer": "adamw", "warmup_epochs": 1, "num_workers": 0, "log_every": 8}
"""What the three trainings have in common."""


def learn(client: Client, **train: Any) -> dict[str, float]:
    """Post a training on two ranks; return the last value of each validation metric once all has been told."""
    job = client.submit(device="cpu", nproc_per_node=2, train=SHARED | train)
    over = client.wait(job.id, timeout_s=280)
    assert over.state == "succeeded", over.failure
    (checkpoint, *_) = [each for each in client.checkpoints(job.id) if each.best]
    assert Path(checkpoint.path).is_file()
    # By step, so what is kept is the last.
    metrics = list(client.metrics(job.id))
    assert all(metric.value is not None for metric in metrics)
    return {metric.name: metric.value for metric in metrics if metric.value is not None}


def test_classification_learns(client: Client) -> None:
    found = learn(
        client,
        recipe="classification",
        model="resnet18",
        data="synthetic",
        options={"synthetic": {"train": 400, "val": 200}},
        image_size=16,
        batch=32,
        epochs=3,
        lr=2e-3,
    )
    assert found["val/accuracy"] > 0.5  # guessing: 0.1
    assert found["val/accuracy"] <= found["val/top5"] <= 1


def test_segmentation_learns(client: Client, tmp_path: Path) -> None:
    found = learn(
        client,
        recipe="segmentation",
        model="lraspp_mobilenet_v3_large",
        data=str(write_voc(tmp_path, train=64, val=24)),
        options={"bn_momentum": 0.1},
        image_size=96,
        epochs=8,
        lr=3e-3,
        augment=["horizontal_flip"],
    )
    assert found["val/miou"] > 0.6  # calling everything background: 0.22
    assert found["val/pixel_accuracy"] > 0.92  # likewise: 0.86


def test_detection_learns(client: Client, tmp_path: Path) -> None:
    found = learn(
        client,
        recipe="detection",
        model="ssdlite320_mobilenet_v3_large",
        data=str(write_coco(tmp_path, train=64, val=24)),
        options={"bn_momentum": 0.1},
        image_size=96,
        epochs=12,
        lr=2e-3,
        augment=["horizontal_flip"],
    )
    assert found["val/map50"] > 0.6  # boxes of a detector that has learned nothing: below 0.02
    assert found["val/map"] > 0.2
    assert found["val/missed"] < 0.8
