"""Detection: what a training item is, and COCO's figures on boxes that are known."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from tests.shapes import NAMES, SIZE, write_coco, write_yolo
from trainer.config import TrainConfig
from trainer.data.scenes import BoxReport, ObjectList, Scene
from trainer.errors import ConfigError, DataError
from trainer.process_group import ProcessGroup
from trainer.recipes.average_precision import MOST_DETECTIONS, average_precision
from trainer.recipes.detection import Detection
from trainer.recipes.recipe import TaskData


def recipe(data: Path | str = "./nowhere", **options: Any) -> Detection:
    fields = {"model": "ssdlite320_mobilenet_v3_large", "image_size": SIZE, "data": str(data), "cache_gb": 0} | options
    return Detection(TrainConfig.model_validate(fields | {"recipe": "detection"}))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_coco(tmp_path_factory.mktemp("coco"), train=8, val=6)


def opened(of: Detection) -> TaskData:
    return of.build_data(ProcessGroup.alone(torch.device("cpu")))


def scene(*objects: tuple[tuple[float, float, float, float], int], crowds: int = 0) -> Scene:
    """A scene of 100 by 200 pixels (height by width), whose last `crowds` objects are crowds."""
    found = ObjectList(BoxReport(), (100, 200))
    for number, (box, label) in enumerate(objects):
        found.add(box, label, where="here", is_crowd=number >= len(objects) - crowds)
    return found.scene(Path("x.png"), Path())


def detections(*rows: tuple[tuple[float, float, float, float], float, int]) -> np.ndarray:
    """Rows of one scene as `average_precision` takes them, from boxes in pixels of such a scene."""
    found = np.zeros((MOST_DETECTIONS, 6))
    for number, (box, score, label) in enumerate(rows):
        found[number] = (*(np.array(box) / (200, 100, 200, 100)), score, label + 1)
    return found


class Perfect(nn.Module):
    """Detects exactly what it was told of, image by image."""

    def __init__(self, boxes: list[torch.Tensor], labels: list[torch.Tensor]) -> None:
        super().__init__()
        self.boxes, self.labels, self.seen = boxes, labels, 0

    def forward(self, images: torch.Tensor) -> list[dict[str, torch.Tensor]]:
        begin, self.seen = self.seen, self.seen + len(images)
        return [
            {"boxes": boxes, "labels": labels, "scores": torch.ones(len(labels))}
            for boxes, labels in zip(self.boxes[begin : self.seen], self.labels[begin : self.seen], strict=True)
        ]


class Trained(nn.Module):
    """Detects nothing, and returns in training what it is given."""

    def __init__(self, losses: object) -> None:
        super().__init__()
        self.losses = losses

    def forward(self, images: torch.Tensor, targets: list[dict[str, Any]] | None = None) -> Any:
        if self.training:
            assert targets is not None
            return self.losses
        return [{"boxes": torch.zeros(0, 4), "scores": torch.zeros(0), "labels": torch.zeros(0)} for _ in images]


def test_a_detector_that_finds_every_object_has_all_of_the_precision(folder: Path) -> None:
    of = recipe(folder, image_size=64)  # not the images' own size, so boxes travel there and back
    data = opened(of)
    targets = [data.val[index]["target"] for index in range(6)]
    model = Perfect([target["boxes"] for target in targets], [target["labels"] for target in targets])
    batches = [data.prepare_val(data.collate([data.val[index] for index in part])) for part in ((0, 1, 2), (3, 4, 5))]
    measured = torch.cat([of.measure(model, batch)["detections"] for batch in batches])
    found = of.summarize({"detections": measured.double()}, 6, data)
    assert found.metrics == pytest.approx({"val/map": 1, "val/map50": 1, "val/map75": 1, "val/missed": 0}, abs=1e-6)
    assert sum(each["objects"] for each in found.by_class.values()) == sum(len(target["labels"]) for target in targets)
    assert all(each["map"] == pytest.approx(1) for each in found.by_class.values() if each["objects"])


def test_a_flip_moves_the_boxes_along(folder: Path) -> None:
    flipped, plain = (opened(recipe(folder, augment=augment)).train for augment in (["horizontal_flip"], []))
    is_flipped = []
    for index in range(8):
        torch.manual_seed(index)
        item, as_it_is = flipped[index], plain[index]
        is_flipped.append(not torch.equal(item["image"], as_it_is["image"]))
        left, top, right, bottom = as_it_is["target"]["boxes"].T
        if is_flipped[-1]:
            assert torch.equal(item["image"], as_it_is["image"].flip(-1))
            left, right = SIZE - right, SIZE - left
        assert torch.equal(item["target"]["boxes"], torch.stack([left, top, right, bottom], dim=1))
    assert {True, False} == set(is_flipped)


def test_precision_is_cocos_in_pixels_of_the_image_on_disk() -> None:
    wide = (0.0, 0.0, 200.0, 10.0)
    truth = scene(((10, 10, 50, 50), 0), (wide, 1))
    found = average_precision([truth], detections(((10, 10, 50, 42), 0.9, 0), (wide, 0.8, 1))[None], classes=3)
    # The first meets its object by 0.8: at 7 of COCO's 10 thresholds. The third class has no object.
    assert list(found.by_class) == [pytest.approx(0.7), pytest.approx(1), None]
    assert (found.all_thresholds, found.at_50, found.at_75) == pytest.approx((0.85, 1, 1))
    assert found.recall == pytest.approx(0.85)


def test_what_is_found_in_a_crowd_is_neither_right_nor_wrong() -> None:
    box, crowd = (10.0, 10.0, 50.0, 50.0), (100.0, 0.0, 200.0, 100.0)
    inside = (120.0, 20.0, 140.0, 40.0)
    rows = detections((inside, 0.95, 0), (box, 0.9, 0))[None]
    assert average_precision([scene((box, 0), (crowd, 0), crowds=1)], rows, classes=1).at_50 == pytest.approx(1)
    assert average_precision([scene((box, 0))], rows, classes=1).at_50 == pytest.approx(0.5)


def test_a_detector_that_finds_nothing_has_none() -> None:
    found = average_precision([scene(((1, 1, 9, 9), 0)), scene()], np.zeros((2, MOST_DETECTIONS, 6)), classes=1)
    assert (found.all_thresholds, found.at_50, found.recall, found.by_class) == (0, 0, 0, (0,))


def test_crowds_are_not_trained_on(tmp_path: Path) -> None:
    root = write_coco(tmp_path, train=1, val=6)
    path = root / "annotations" / "instances_train.json"
    content = json.loads(path.read_text())
    objects = len(content["annotations"])
    content["annotations"].append(content["annotations"][0] | {"id": 99, "iscrowd": 1})
    path.write_text(json.dumps(content))
    assert len(opened(recipe(root)).train[0]["target"]["labels"]) == objects


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"augment": ["random_crop"]}, "augment: random_crop would cut objects off"),
        ({"strategy": "dp"}, "strategy: dp splits a batch as tensors"),
        ({"model": "ssd300_vgg16"}, "image_size: ssd300_vgg16 is made for 300 pixels, not 96"),
        ({"options": {"aux_loss": 1}}, "options: aux_loss is no option"),
    ],
)
def test_what_detection_cannot_do_is_refused_with_a_way_out(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        recipe(**options)


def test_an_image_whose_very_size_cannot_be_read_is_left_out_like_any_other(tmp_path: Path) -> None:
    root = write_yolo(tmp_path, train=4, val=2)
    (root / "images" / "train" / "0001.png").write_bytes(b"no image")
    with pytest.raises(DataError, match=r"0001\.png"):
        opened(recipe(root))
    data = opened(recipe(root, on_bad_image="skip"))
    assert len(data.train) == 3  # type: ignore[arg-type]  # torch's Dataset has no length
    assert torch.equal(
        data.train[1]["image"], opened(recipe(write_yolo(tmp_path / "whole", train=4, val=2))).train[2]["image"]
    )


def test_an_image_of_another_size_than_its_annotations_say_is_named_or_left_out(tmp_path: Path) -> None:
    root = write_coco(tmp_path, train=3, val=1)
    Image.new("RGB", (SIZE, SIZE // 2)).save(root / "train" / "0001.png")
    said = (
        rf"1 of 4 images cannot be used .*/0001\.png: {SIZE} by {SIZE // 2} pixels, and its annotations are of 96 by 96"
    )
    for cache_gb in (0, 1):
        with pytest.raises(DataError, match=said):
            opened(recipe(root, cache_gb=cache_gb))
    assert len(opened(recipe(root, on_bad_image="skip")).train) == 2  # type: ignore[arg-type]  # torch's Dataset has no length


def test_a_set_of_which_no_image_with_an_object_is_left_is_refused(tmp_path: Path) -> None:
    root = write_yolo(tmp_path, train=2, val=1)
    (root / "labels" / "train" / "0000.txt").unlink()
    (root / "images" / "train" / "0001.png").write_bytes(b"no image")
    with pytest.raises(DataError, match="no image of the train set that can be used has an object"):
        opened(recipe(root, on_bad_image="skip"))


def test_a_model_of_the_callers_own_has_to_detect(folder: Path) -> None:
    of = recipe(folder)
    data = opened(of)
    of.check_model(Trained({"loss": torch.zeros(())}), data)
    with pytest.raises(ConfigError, match="a list with a dictionary of boxes, scores and labels"):
        of.check_model(nn.Conv2d(3, 4, 1), data)
    wrong: tuple[object, ...] = ({}, {"loss": torch.zeros(2)}, torch.zeros(()), [])
    for losses in wrong:
        with pytest.raises(ConfigError, match="and in training a dictionary of scalar losses"):
            of.check_model(Trained(losses), data)
    assert data.class_names == NAMES
