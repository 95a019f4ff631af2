"""Drawn shapes: small images of circles, squares and triangles whose boxes and masks are known, in three layouts."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from PIL import Image, ImageDraw

NAMES = ("circle", "square", "triangle")
"""In the order of their labels, which is that of the alphabet."""
_COLOURS = ((220, 60, 60), (60, 200, 80), (70, 90, 230))
SIZE = 96
"""Height and width of the images in pixels."""


@dataclass(frozen=True)
class Drawing:
    """One image, and what is in it."""

    image: Image.Image
    labels: tuple[int, ...]
    boxes: tuple[tuple[int, int, int, int], ...]
    """Left, top, right and bottom, in pixels from 0; right and bottom are beyond the shape."""
    outlines: tuple[tuple[float, ...], ...]
    """x and y of the points around each shape."""
    mask: Image.Image
    """0 for the background, else the label from 1 on, as a palette has it."""


def drawings(count: int, *, seed: int) -> Iterator[Drawing]:
    """Draw images of noise with one or two shapes each, which do not touch."""
    random = np.random.default_rng(seed)
    for _ in range(count):
        image = Image.fromarray(random.integers(90, 130, (SIZE, SIZE, 3)).astype(np.uint8))
        mask = Image.new("L", image.size)
        halves = [(0, SIZE // 2), (SIZE // 2, SIZE)] if random.random() < 0.5 else [(0, SIZE)]
        labels, boxes, outlines = [], [], []
        for begin, end in halves:
            size = int(random.integers(26, 42))
            left, top = int(random.integers(begin, end - size)), int(random.integers(0, SIZE - size))
            label, box = int(random.integers(len(NAMES))), (left, top, left + size, top + size)
            outline = _outline(label, box)
            ImageDraw.Draw(image).polygon(outline, fill=_COLOURS[label])
            ImageDraw.Draw(mask).polygon(outline, fill=label + 1)
            labels.append(label)
            boxes.append(box)
            outlines.append(tuple(number for point in outline for number in point))
        yield Drawing(image, tuple(labels), tuple(boxes), tuple(outlines), mask)


def write_voc(root: Path, *, train: int, val: int) -> Path:
    """Write drawings as VOC has them, boxes and masks."""
    for split, number, drawing in _dealt(train, val):
        name = f"{split}_{number:04}"
        _saved(drawing.image, root / "JPEGImages" / f"{name}.jpg", quality=95)
        _saved(drawing.mask, root / "SegmentationClass" / f"{name}.png")
        objects = "".join(
            f"<object><name>{NAMES[label]}</name><bndbox><xmin>{box[0] + 1}</xmin><ymin>{box[1] + 1}</ymin>"
            f"<xmax>{box[2]}</xmax><ymax>{box[3]}</ymax></bndbox></object>"
            for label, box in zip(drawing.labels, drawing.boxes, strict=True)
        )
        write_annotation(root / "Annotations" / f"{name}.xml", objects)
        for task in ("Main", "Segmentation"):
            path = root / "ImageSets" / task / f"{split}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a") as lines:
                lines.write(f"{name}\n")
            for of_class in NAMES:
                (root / "ImageSets" / "Main" / f"{of_class}_{split}.txt").touch()
    return root


def write_annotation(path: Path, objects: str) -> None:
    """Write VOC's file of one image's objects."""
    path.parent.mkdir(parents=True, exist_ok=True)
    size = f"<size><width>{SIZE}</width><height>{SIZE}</height><depth>3</depth></size>"
    path.write_text(f"<annotation>{size}{objects}</annotation>")


def write_coco(root: Path, *, train: int, val: int) -> Path:
    """Write drawings as COCO has them; the categories' ids are 10, 20 and 30."""
    contents: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for split, number, drawing in _dealt(train, val):
        content = contents.setdefault(
            split,
            {
                "images": [],
                "annotations": [],
                "categories": [{"id": 10 * (label + 1), "name": name} for label, name in enumerate(NAMES)],
            },
        )
        _saved(drawing.image, root / split / f"{number:04}.png")
        content["images"].append({"id": number, "file_name": f"{number:04}.png", "width": SIZE, "height": SIZE})
        for label, (left, top, right, bottom), outline in zip(
            drawing.labels, drawing.boxes, drawing.outlines, strict=True
        ):
            content["annotations"].append(
                {
                    "id": len(content["annotations"]) + 1,
                    "image_id": number,
                    "category_id": 10 * (label + 1),
                    "bbox": [left, top, right - left, bottom - top],
                    "area": (right - left) * (bottom - top),
                    "iscrowd": 0,
                    "segmentation": [list(outline)],
                }
            )
    (root / "annotations").mkdir()
    for split, content in contents.items():
        (root / "annotations" / f"instances_{split}.json").write_text(json.dumps(content))
    return root


def write_yolo(root: Path, *, train: int, val: int, polygons: bool = False) -> Path:
    """Write drawings as YOLO has them: boxes, or the shapes' outlines."""
    for split, number, drawing in _dealt(train, val):
        _saved(drawing.image, root / "images" / split / f"{number:04}.png")
        lines = [
            f"{label} {_numbers(outline if polygons else _center_and_size(box))}"
            for label, box, outline in zip(drawing.labels, drawing.boxes, drawing.outlines, strict=True)
        ]
        path = root / "labels" / split / f"{number:04}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines))
    names = dict(enumerate(NAMES))
    (root / "data.yaml").write_text(yaml.safe_dump({"train": "images/train", "val": "images/val", "names": names}))
    return root


def _dealt(train: int, val: int) -> Iterator[tuple[str, int, Drawing]]:
    for split, count, seed in (("train", train, 0), ("val", val, 1)):
        for number, drawing in enumerate(drawings(count, seed=seed)):
            yield split, number, drawing


def _outline(label: int, box: tuple[int, int, int, int]) -> list[tuple[float, float]]:
    left, top, right, bottom = box[0], box[1], box[2] - 1, box[3] - 1
    if NAMES[label] == "square":
        return [(left, top), (right, top), (right, bottom), (left, bottom)]
    if NAMES[label] == "triangle":
        return [((left + right) / 2, top), (right, bottom), (left, bottom)]
    angles = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    radius = (right - left) / 2
    return [(left + radius + radius * float(np.cos(a)), top + radius + radius * float(np.sin(a))) for a in angles]


def _saved(image: Image.Image, path: Path, **options: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path, **options)


def _center_and_size(box: tuple[int, int, int, int]) -> tuple[float, ...]:
    left, top, right, bottom = box
    return (left + right) / 2, (top + bottom) / 2, right - left, bottom - top


def _numbers(pixels: Sequence[float]) -> str:
    return " ".join(f"{number / SIZE:.6f}" for number in pixels)
