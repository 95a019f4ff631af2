"""Broken annotations: whatever is wrong in a file of VOC, COCO or YOLO, the error names the file and what is in it."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.shapes import SIZE, write_coco, write_voc, write_yolo
from trainer.data.scenes import Needs, open_scenes
from trainer.errors import DataError

HUGE = 10**400
"""More than a float can be."""


@pytest.fixture
def voc(tmp_path: Path) -> Path:
    return write_voc(tmp_path, train=2, val=1)


@pytest.fixture
def coco(tmp_path: Path) -> Path:
    return write_coco(tmp_path, train=2, val=1)


@pytest.fixture
def yolo(tmp_path: Path) -> Path:
    return write_yolo(tmp_path, train=2, val=1)


def refused(root: Path, said: str, *, needs: Needs = "boxes") -> None:
    with pytest.raises(DataError, match=said):
        open_scenes(root, needs=needs)


def sized(width: str) -> bytes:
    return f"<annotation><size><width>{width}</width><height>5</height></size></annotation>".encode()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'<?xml version="1.0" encoding="klingon"?><a/>', " is no XML"),
        (b'<?xml version="1.0" encoding="utf-7"?><a/>', " is no XML"),
        (b'<?xml version="1.0" encoding="utf-32"?><a/>', " is no XML"),
        (b'<?xml version="1.0" encoding="shift_jis"?><a>\x83</a>', " is no XML"),
        (b"<annotation>", " is no XML"),
        (b"<annotation/>", ": a annotation without size/width"),
        (sized("inf"), ": an image of inf by 5 pixels"),
        (sized("0"), ": an image of 0 by 5 pixels"),
        (sized("9" * 400), ": an image of 9+"),
    ],
)
def test_a_file_of_voc_that_cannot_be_taken_is_named(content: bytes, said: str, voc: Path) -> None:
    (voc / "Annotations" / "train_0001.xml").write_bytes(content)
    refused(voc, rf"train_0001\.xml{said}")


def test_pipes_folders_and_links_to_themselves_are_named_in_place_of_annotations_and_masks(voc: Path) -> None:
    annotation, mask = voc / "Annotations" / "train_0001.xml", voc / "SegmentationClass" / "train_0001.png"
    kinds: list[Callable[[Path], object]] = [os.mkfifo, Path.mkdir, lambda path: path.symlink_to(path)]
    for make in kinds:
        for path in (annotation, mask):
            path.rmdir() if path.is_dir() else path.unlink()
            make(path)
        refused(voc, rf"{annotation} cannot be read: ")
        refused(voc, rf"{mask}: not a readable image", needs="masks")


@pytest.mark.parametrize(
    ("kind", "changes", "said"),
    [
        ("images", {"id": [1]}, ": an id of an image has to be a number or a text"),
        ("images", {"width": 0}, ": image 0 needs file_name, width and height: an image of 0 by 96 pixels"),
        ("images", {"height": -1}, ": image 0 needs file_name, width and height: an image of 96 by -1 pixels"),
        ("images", {"width": float("inf")}, ": image 0 needs file_name, width and height"),
        ("images", {"width": HUGE}, ": image 0 needs file_name, width and height"),
        ("categories", {"id": [1]}, ": a category without id and name"),
        ("categories", {"id": float("inf")}, ": a category without id and name"),
        ("categories", {"name": None}, ": a category without id and name: None is no name of a class"),
        ("categories", {"id": 20}, ": category 20 is listed twice"),
        ("annotations", {"image_id": [1]}, ": annotation 1 has no image_id"),
        ("annotations", {"category_id": [1]}, ", annotation 1: category_id has to be"),
        ("annotations", {"bbox": [0, 0, HUGE, 1]}, ", annotation 1: bbox has to be"),
        ("annotations", {"area": "big"}, ", annotation 1: area has to be a number"),
        ("annotations", {"area": HUGE}, ", annotation 1: area has to be a number"),
        ("annotations", {"area": float("nan")}, ", annotation 1: area has to be a number"),
        ("annotations", {"iscrowd": "0"}, ", annotation 1: iscrowd has to be 0 or 1"),
        ("annotations", {"segmentation": [[float("nan")] * 6]}, ", annotation 1: its outline has points"),
        ("annotations", {"segmentation": [[1e30] * 6]}, ", annotation 1: its outline has points"),
        ("annotations", {"segmentation": [[1e300] * 6]}, ", annotation 1: its outline has points"),
        ("annotations", {"segmentation": [[HUGE] * 6]}, ", annotation 1: segmentation has to be"),
        ("annotations", {"segmentation": {"size": [SIZE, SIZE], "counts": "0"}}, ", annotation 1: broken run lengths"),
        ("annotations", {"segmentation": {"size": [SIZE, SIZE], "counts": [5]}}, ", annotation 1: broken run lengths"),
    ],
)
def test_an_entry_of_coco_that_is_no_number_or_no_size_is_named(
    kind: str, changes: dict[str, Any], said: str, coco: Path
) -> None:
    path = coco / "annotations" / "instances_train.json"
    content = json.loads(path.read_text())
    content[kind][0].update(changes)
    path.write_text(json.dumps(content))
    refused(coco, rf"instances_train\.json{said}", needs="masks")


def test_a_file_of_coco_that_is_nested_without_end_is_named(coco: Path) -> None:
    (coco / "annotations" / "instances_train.json").write_text("[" * 200_000)
    refused(coco, r"instances_train\.json is no JSON: RecursionError")


@pytest.mark.parametrize(
    "line",
    [
        "date: 2020-13-45",
        'count: !!int ""',
        "deep: " + "[" * 5000,
        "names: {0: a, x: b}",
        "names: [a, ~]",
        "names: [a, [b]]",
        "train:",
        "train: [{a: b}]",
        f"train: {'x' * 300}",
    ],
)
def test_a_file_of_yolo_that_cannot_be_taken_is_named(line: str, yolo: Path) -> None:
    with (yolo / "data.yaml").open("a") as file:
        file.write(f"\n{line}\n")
    refused(yolo, r"/data\.yaml")


def test_links_to_folders_that_are_passed_over_in_a_set_of_yolo_are_told(yolo: Path) -> None:
    (yolo / "images" / "train" / "linked").symlink_to(yolo / "images" / "val")
    assert open_scenes(yolo, needs="boxes").warnings == (
        f"data: {yolo / 'images' / 'train' / 'linked'} is a link to a folder inside of a set, and is ignored",
    )


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("nowhere")])
def test_what_is_no_file_in_place_of_yolos_labels_is_named(make: Callable[[Path], object], yolo: Path) -> None:
    path = yolo / "labels" / "train" / "0001.txt"
    path.unlink()
    make(path)
    refused(yolo, rf"data: {path} (cannot be read|is missing)")
