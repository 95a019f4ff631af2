"""Average precision: how well detected boxes meet the objects of a validation set, by COCO's own evaluation."""

from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainer.data.scenes import Scene

MOST_DETECTIONS = 100
"""Detections of an image that count, those with the highest scores: COCO's number."""


@dataclass(frozen=True)
class AveragePrecision:
    """COCO's figures (cocodataset.org, Detection Evaluation), each in 0 … 1."""

    all_thresholds: float
    """Mean over classes and over intersections over union of 0.5, 0.55, … 0.95."""
    at_50: float
    """At an intersection over union of 0.5."""
    at_75: float
    recall: float
    """Mean recall over the same thresholds: the share of the objects that is found at all."""
    by_class: tuple[float | None, ...]
    """Over all thresholds; None for a class that no image has."""


def average_precision(scenes: Sequence[Scene], detections: NDArray[np.float64], *, classes: int) -> AveragePrecision:
    """Hold detections, [scenes, most, 6], against the scenes.

    A detection is left, top, right and bottom as shares of the image's width and height, score, and label from 1 on; a
    row whose label is 0 is none. They are compared in pixels of the images as they are on disk, which COCO's sizes of
    objects are meant in, and which the resize to a square would distort. Crowds count as COCO has them count: what is
    found in them is neither right nor wrong. There has to be an object in some scene.
    """
    from pycocotools.cocoeval import COCOeval

    with redirect_stdout(StringIO()):  # it prints its progress and a table
        truth = _index(scenes, [row for number, scene in enumerate(scenes) for row in _objects(number, scene)], classes)
        found = _index(scenes, [row for pair in enumerate(scenes) for row in _found(*pair, detections)], classes)
        evaluation = COCOeval(truth, found, "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    over_all, at_50, at_75, recall = (max(0.0, float(evaluation.stats[index])) for index in (0, 1, 2, 8))
    # [thresholds, recalls, classes, sizes of objects, most detections]; -1 where a class has no object.
    precision = evaluation.eval["precision"][:, :, :, 0, -1]
    by_class = tuple(
        float(of_class.mean()) if of_class.min() > -1 else None for of_class in np.moveaxis(precision, 2, 0)
    )
    return AveragePrecision(over_all, at_50, at_75, recall, by_class)


def _objects(number: int, scene: Scene) -> list[dict[str, Any]]:
    rows = zip(scene.boxes, scene.labels, scene.areas, scene.is_crowd, strict=True)
    return [
        _annotation(number, box, int(label) + 1, area=float(area), is_crowd=int(is_crowd))
        for box, label, area, is_crowd in rows
    ]


def _found(number: int, scene: Scene, detections: NDArray[np.float64]) -> list[dict[str, Any]]:
    height, width = scene.size
    rows = detections[number]
    boxes = rows[:, :4] * (width, height, width, height)
    return [
        _annotation(number, box, int(label), area=float((box[2] - box[0]) * (box[3] - box[1])), score=float(score))
        for box, score, label in zip(boxes, rows[:, 4], rows[:, 5], strict=True)
        if label
    ]


def _annotation(
    number: int, box: NDArray[np.float64], label: int, *, area: float, is_crowd: int = 0, score: float | None = None
) -> dict[str, Any]:
    left, top, right, bottom = map(float, box)
    annotation = {
        "image_id": number,
        "category_id": label,
        "bbox": [left, top, right - left, bottom - top],
        "area": area,
        "iscrowd": is_crowd,
    }
    return annotation if score is None else annotation | {"score": score}


def _index(scenes: Sequence[Scene], annotations: Sequence[dict[str, Any]], classes: int) -> Any:
    """Return what pycocotools makes of a file of instances."""
    from pycocotools.coco import COCO

    index = COCO()
    index.dataset = {
        "images": [{"id": number} for number in range(len(scenes))],
        "categories": [{"id": label} for label in range(1, classes + 1)],
        "annotations": [annotation | {"id": number} for number, annotation in enumerate(annotations, start=1)],
    }
    index.createIndex()
    return index
