"""Scenes: what is read of the layouts of VOC, COCO and YOLO, what is put right, and what is refused."""

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from pycocotools import mask as run_lengths

from tests.shapes import NAMES, SIZE, drawings, write_annotation, write_coco, write_voc, write_yolo
from trainer.data.masks import draw_mask
from trainer.data.scenes import VOID, Scene, open_scenes
from trainer.errors import DataError

WRITERS: dict[str, Callable[..., Path]] = {"voc": write_voc, "coco": write_coco, "yolo": write_yolo}


def write(layout: str, root: Path, *, needs: str = "boxes") -> Path:
    root.mkdir(exist_ok=True)
    options = {"polygons": needs == "masks"} if layout == "yolo" else {}
    return WRITERS[layout](root, train=12, val=3, **options)


def edit_coco(root: Path, split: str, change: Callable[[dict[str, Any]], object]) -> Path:
    path = root / "annotations" / f"instances_{split}.json"
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    return path


def classes_of(scene: Scene) -> set[int]:
    return set(np.unique(draw_mask(scene, size=SIZE)).tolist())


@pytest.mark.parametrize("layout", WRITERS)
def test_each_layout_tells_of_the_same_boxes_and_classes(layout: str, tmp_path: Path) -> None:
    scenes = open_scenes(write(layout, tmp_path), needs="boxes")
    assert scenes.class_names == NAMES
    assert scenes.warnings == ()
    for members, seed in ((scenes.train, 0), (scenes.val, 1)):
        drawn = list(drawings(len(members), seed=seed))
        assert [scene.size for scene in members] == [(SIZE, SIZE)] * len(drawn)
        for scene, drawing in zip(members, drawn, strict=True):
            assert scene.labels.tolist() == list(drawing.labels)
            assert np.abs(scene.boxes - np.array(drawing.boxes)).max() < 1e-3


@pytest.mark.parametrize("layout", WRITERS)
def test_each_layout_tells_of_the_same_pixels(layout: str, tmp_path: Path) -> None:
    scenes = open_scenes(write(layout, tmp_path, needs="masks"), needs="masks")
    assert scenes.class_names == NAMES
    for scene, drawing in zip(scenes.train, drawings(len(scenes.train), seed=0), strict=True):
        differing = draw_mask(scene, size=SIZE).numpy() != np.asarray(drawing.mask)
        # Pillow and COCO differ in whether a pixel that an edge goes through is inside.
        assert differing.mean() < (0.02 if layout != "voc" else 1e-9)


def test_masks_are_resized_without_new_classes_at_their_edges(tmp_path: Path) -> None:
    (scene, *_) = open_scenes(write("voc", tmp_path), needs="masks").train
    assert set(np.unique(draw_mask(scene, size=31)).tolist()) <= classes_of(scene)


def test_a_folder_of_no_layout_and_one_of_two_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none of the layouts.*JPEGImages.*instances_train.*data\.yaml"):
        open_scenes(tmp_path, needs="boxes")
    write("voc", tmp_path)
    write("yolo", tmp_path)
    with pytest.raises(DataError, match="looks like VOC and YOLO"):
        open_scenes(tmp_path, needs="boxes")


def test_a_box_beyond_its_image_is_clipped_and_one_without_area_left_out_with_warnings_that_count_them(
    tmp_path: Path,
) -> None:
    write("yolo", tmp_path)
    labels = tmp_path / "labels" / "train" / "0000.txt"
    labels.write_text("0 0.9 0.5 0.4 0.5\n1 0.5 0.5 0 0.5\n2 1.5 0.5 0.2 0.2\n2 0.5 0.5 0.5 0.5")
    scenes = open_scenes(tmp_path, needs="boxes")
    (scene, *_) = scenes.train
    assert scene.labels.tolist() == [0, 2]
    assert scene.boxes[0].tolist() == pytest.approx([0.7 * SIZE, 0.25 * SIZE, SIZE, 0.75 * SIZE])
    assert scenes.warnings == (
        f"data: boxes that reach beyond their image are clipped to it: 1 (first: {labels}, line 1)",
        f"data: boxes that have no area within their image are left out: 2 (first: {labels}, line 2)",
    )


def test_images_that_are_listed_twice_or_in_both_sets_are_told(tmp_path: Path) -> None:
    lists = write("voc", tmp_path) / "ImageSets" / "Main"
    train, val = ((lists / f"{split}.txt").read_text().split() for split in ("train", "val"))
    (lists / "val.txt").write_text("\n".join([*val, *train[:2], val[0]]))
    scenes = open_scenes(tmp_path, needs="boxes")
    assert scenes.warnings == (
        "data: images that are in both sets, so that validation is on what was trained on: 2 "
        f"(first: JPEGImages/{train[0]}.jpg)",
        f"data: images that the val set lists more than once: 1 (first: JPEGImages/{val[0]}.jpg)",
    )


def test_an_image_without_objects_is_kept(tmp_path: Path) -> None:
    for layout in WRITERS:
        root = write(layout, tmp_path / layout)
        match layout:
            case "voc":
                write_annotation(root / "Annotations" / "train_0000.xml", "")
            case "coco":
                edit_coco(
                    root,
                    "train",
                    lambda content: content.update(
                        annotations=[each for each in content["annotations"] if each["image_id"] != 0]
                    ),
                )
            case "yolo":
                (root / "labels" / "train" / "0000.txt").unlink()
        scenes = open_scenes(root, needs="boxes")
        assert len(scenes.train) == 12
        assert scenes.train[0].boxes.shape == (0, 4)


def test_a_class_that_only_validation_has_is_an_error_that_names_file_and_class(tmp_path: Path) -> None:
    root = write("voc", tmp_path / "voc")
    box = "<bndbox><xmin>5</xmin><ymin>5</ymin><xmax>9</xmax><ymax>9</ymax></bndbox>"
    write_annotation(root / "Annotations" / "val_0001.xml", f"<object><name>star</name>{box}</object>")
    with pytest.raises(DataError, match=r"val_0001\.xml: no image of the train set has a 'star'"):
        open_scenes(root, needs="boxes")
    Image.new("L", (SIZE, SIZE), 7).save(root / "SegmentationClass" / "val_0002.png")
    with pytest.raises(DataError, match=r"val_0002\.png: no mask of the train set has class 7"):
        open_scenes(root, needs="masks")
    root = write("coco", tmp_path / "coco")
    edit_coco(root, "val", lambda content: content["categories"].append({"id": 40, "name": "star"}))
    with pytest.raises(DataError, match=r"instances_val\.json: category 40 \('star'\)"):
        open_scenes(root, needs="boxes")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("3 0.5 0.5 0.1 0.1", "line 2: class 3, and names has 0 to 2"),
        ("0 0.5 0.5 0.1", "line 2: 3 numbers after the class"),
        ("0 0.5 0.5 0.1 x", "line 2: '0 0.5 0.5 0.1 x' is not made of numbers"),
        ("0 0.5 0.5 0.1 nan", "line 2: the box .* is not made of numbers"),
    ],
)
def test_a_line_of_yolo_that_says_nothing_is_named(line: str, said: str, tmp_path: Path) -> None:
    write("yolo", tmp_path)
    (tmp_path / "labels" / "val" / "0001.txt").write_text(f"0 0.5 0.5 0.1 0.1\n{line}\n")
    with pytest.raises(DataError, match=rf"0001\.txt, {said}"):
        open_scenes(tmp_path, needs="boxes")


def test_boxes_alone_do_not_do_for_masks(tmp_path: Path) -> None:
    write("yolo", tmp_path)
    with pytest.raises(DataError, match=r"0000\.txt, line 1: a box says nothing about pixels"):
        open_scenes(tmp_path, needs="masks")


def test_yolo_finds_images_by_what_its_file_says_in_folders_and_lists(tmp_path: Path) -> None:
    root = write("yolo", tmp_path / "sets")
    (root / "data.yaml").unlink()
    (tmp_path / "val.txt").write_text("./sets/images/val/0001.png\n")
    (tmp_path / "dataset.yaml").write_text("path: .\ntrain: [sets/images/train]\nval: val.txt\nnames: [a, b, c]\n")
    scenes = open_scenes(tmp_path, needs="boxes")
    assert scenes.class_names == ("a", "b", "c")
    assert (len(scenes.train), len(scenes.val)) == (12, 1)
    assert len(scenes.val[0].labels) > 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda content: content["annotations"][0].update(category_id=5), "annotation 1: there is no category 5"),
        (lambda content: content["annotations"][1].update(bbox=[1, 2]), "annotation 2: bbox has to be"),
        (lambda content: content["annotations"][0].update(image_id=99), "annotation 1 is of image 99"),
        (lambda content: content["images"][0].pop("width"), "image 0 needs file_name, width and height"),
        (lambda content: content["images"][0].update(file_name="gone.png"), "image gone.png of .* is not in"),
        (lambda content: content.pop("images"), "has no list of 'images'"),
        (lambda content: content["images"].append(content["images"][0]), "image 0 is listed twice"),
    ],
)
def test_an_entry_of_coco_that_cannot_be_taken_is_named(
    change: Callable[[dict[str, Any]], object], said: str, tmp_path: Path
) -> None:
    path = edit_coco(write("coco", tmp_path), "train", change)
    with pytest.raises(DataError, match=said) as error:
        open_scenes(tmp_path, needs="boxes")
    assert str(path) in str(error.value) or path.name in str(error.value)


def test_cocos_run_lengths_are_read_and_crowds_are_void(tmp_path: Path) -> None:
    pixels = np.zeros((SIZE, SIZE), dtype=np.uint8)
    pixels[:, :20] = 1
    compressed = run_lengths.encode(np.asfortranarray(pixels))
    crowd = {"size": [SIZE, SIZE], "counts": [0, SIZE * 50, SIZE * (SIZE - 50)]}

    def replace(content: dict[str, Any]) -> None:
        of_first = {"image_id": 0, "category_id": 20, "bbox": [0, 0, 20, SIZE], "area": 20 * SIZE}
        object_ = of_first | {"id": 1, "segmentation": compressed | {"counts": compressed["counts"].decode()}}
        region = of_first | {"id": 2, "iscrowd": 1, "bbox": [0, 0, 50, SIZE], "segmentation": crowd}
        content["annotations"] = [object_, region]

    edit_coco(write("coco", tmp_path), "train", replace)
    (scene, *_) = open_scenes(tmp_path, needs="masks").train
    assert scene.is_crowd.tolist() == [False, True]
    mask = draw_mask(scene, size=SIZE)
    assert mask[50].tolist() == [2] * 20 + [VOID] * 30 + [0] * (SIZE - 50)


def test_run_lengths_of_another_size_are_refused(tmp_path: Path) -> None:
    def replace(content: dict[str, Any]) -> None:
        content["annotations"][0]["segmentation"] = {"size": [SIZE, 5], "counts": [SIZE * 5]}

    edit_coco(write("coco", tmp_path), "train", replace)
    with pytest.raises(DataError, match=r"annotation 1: run lengths of size \[96, 5\] in an image of \[96, 96\]"):
        open_scenes(tmp_path, needs="masks")


def test_files_that_windows_wrote_are_read_and_those_of_other_encodings_named(tmp_path: Path) -> None:
    root = write("yolo", tmp_path)
    labels = root / "labels" / "train" / "0000.txt"
    labels.write_bytes("0 0.5 0.5 0.5 0.5\r\n".encode("utf-8-sig"))
    assert len(open_scenes(root, needs="boxes").train[0].labels) == 1
    labels.write_bytes("0 0.5 0.5 0.5 0.5".encode("utf-16"))
    with pytest.raises(DataError, match=r"0000\.txt is no text"):
        open_scenes(root, needs="boxes")


def test_hidden_folders_are_no_part_of_a_set(tmp_path: Path) -> None:
    root = write("yolo", tmp_path)
    copy = root / "images" / "train" / ".ipynb_checkpoints" / "0000.png"
    copy.parent.mkdir()
    copy.write_bytes((root / "images" / "train" / "0000.png").read_bytes())
    assert len(open_scenes(root, needs="boxes").train) == 12


def test_a_set_without_any_object_is_refused(tmp_path: Path) -> None:
    root = write("yolo", tmp_path)
    for labels in (root / "labels" / "val").iterdir():
        labels.unlink()
    with pytest.raises(DataError, match="no image of the val set"):
        open_scenes(root, needs="boxes")


def test_the_smaller_of_two_objects_is_in_front(tmp_path: Path) -> None:
    square = "{0} 0.2 0.2 0.2 0.8 0.8 0.8 0.8 0.2\n"
    inner = "{0} 0.4 0.4 0.4 0.6 0.6 0.6 0.6 0.4\n"
    write("yolo", tmp_path, needs="masks")
    for number, text in enumerate((inner.format(1) + square.format(0), square.format(0) + inner.format(1))):
        (tmp_path / "labels" / "train" / f"{number:04}.txt").write_text(text)
    for scene in open_scenes(tmp_path, needs="masks").train[:2]:
        mask = draw_mask(scene, size=SIZE)
        assert mask[SIZE // 2, [SIZE // 2, SIZE // 4]].tolist() == [2, 1]


def test_masks_that_are_missing_or_no_palette_are_named_before_training(tmp_path: Path) -> None:
    root = write("voc", tmp_path)
    path = root / "SegmentationClass" / "train_0003.png"
    Image.new("RGB", (SIZE, SIZE)).save(path)
    with pytest.raises(DataError, match=r"train_0003\.png: a mask is a palette or grey image.*mode RGB"):
        open_scenes(root, needs="masks")
    path.write_bytes(b"\x89PNG")
    with pytest.raises(DataError, match=r"train_0003\.png"):
        open_scenes(root, needs="masks")
    path.unlink()
    with pytest.raises(DataError, match=r"mask .*train_0003\.png is missing"):
        open_scenes(root, needs="masks")


def test_the_samples_tell_another_annotation_and_not_another_place(tmp_path: Path) -> None:
    first = open_scenes(write("yolo", tmp_path / "a"), needs="boxes").samples
    moved = write("yolo", tmp_path / "b")
    assert open_scenes(moved, needs="boxes").samples == first
    with (moved / "labels" / "train" / "0000.txt").open("a") as labels:
        labels.write("\n0 0.5 0.5 0.1 0.1")
    assert open_scenes(moved, needs="boxes").samples != first


def test_more_classes_than_a_masks_bytes_can_tell_are_refused_for_masks_alone(tmp_path: Path) -> None:
    root = write("yolo", tmp_path, needs="masks")
    for count in (254, 255):
        (root / "data.yaml").write_text(f"train: images/train\nval: images/val\nnames: {list(range(count))}")
        assert len(open_scenes(root, needs="boxes").class_names) == count
        if count == 254:
            open_scenes(root, needs="masks")
    with pytest.raises(DataError, match=r"has 255 classes, and a mask .* 254 of them fit"):
        open_scenes(root, needs="masks")


def test_a_folder_that_may_not_be_looked_into_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> bool:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "is_dir", refuse)  # nothing is forbidden to root
    with pytest.raises(DataError, match=rf"^data: {tmp_path}: PermissionError: .*Permission denied"):
        open_scenes(tmp_path, needs="boxes")
