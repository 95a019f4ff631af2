"""YOLO's layout: a `data.yaml` that names classes and folders of images, with a text file of objects for each image."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from trainer.data.data_files import naming, read_text
from trainer.data.folders import image_files
from trainer.data.images import image_size
from trainer.data.scenes import BoxReport, Needs, ObjectList, Scene, Scenes, Shape, Survey, class_name
from trainer.errors import DataError

_FILES = ("data.yaml", "data.yml", "dataset.yaml", "dataset.yml")


def is_layout_of(root: Path) -> bool:
    """Return whether a folder has this layout."""
    return any((root / name).is_file() for name in _FILES)


def read(root: Path, *, needs: Needs, survey: Survey) -> Scenes:
    """Read both sets. Numbers in label files are shares of the image's width and height.

    Raises DataError naming the file, and the line of what in it cannot be taken as it is.
    """
    path = next(root / name for name in _FILES if (root / name).is_file())
    with naming(path):
        content = _content(path)
        names = _names(content, path)
        listed = {split: _images(root, content, split, path) for split in ("train", "val")}
    images = {split: found for split, (found, _) in listed.items()}
    linked = dict.fromkeys(link for _, links in listed.values() for link in links)
    warnings = [f"data: {link} is a link to a folder inside of a set, and is ignored" for link in linked]
    report = BoxReport()
    reader = _Reader(root, names, report, needs)
    sizes = iter(survey([image for members in images.values() for image in members], _size))
    sets = {split: tuple(reader.scene(image, next(sizes)) for image in members) for split, members in images.items()}
    return Scenes(names, sets["train"], sets["val"], (*warnings, *report.warnings()))


def _content(path: Path) -> Mapping[str, Any]:
    try:
        content = yaml.safe_load(read_text(path))
    except yaml.YAMLError as error:
        raise DataError(f"data: {path} is no YAML: {error}") from error
    if not isinstance(content, dict):
        raise DataError(f"data: {path} has to hold names, train and val")
    return content


def _names(content: Mapping[str, Any], path: Path) -> tuple[str, ...]:
    names = content.get("names")
    if isinstance(names, dict) and set(names) == set(range(len(names))):
        names = [names[index] for index in range(len(names))]
    if not isinstance(names, list) or not names:
        raise DataError(f"data: {path}: names has to be a list of the classes, or to number them from 0")
    return tuple(map(class_name, names))


def _images(root: Path, content: Mapping[str, Any], split: str, path: Path) -> tuple[list[Path], list[Path]]:
    """Return the images of a set: in a folder, in a file that lists them, or in several of these; and links to folders
    that are passed over.
    """
    given = content.get(split, f"images/{split}")
    base = root / str(content.get("path") or ".")
    found: list[Path] = []
    linked: list[Path] = []
    for each in given if isinstance(given, list) else [given]:
        if not isinstance(each, str):
            raise DataError(
                f"data: {path}: {split} has to be a folder, or a file that lists images, or a list of these"
            )
        place = base / each
        if place.is_dir():
            images, links = image_files(place)
            found += images
            linked += links
        elif place.is_file():
            found += [base / line.strip() for line in read_text(place).splitlines() if line.strip()]
        else:
            raise DataError(f"data: {place} does not exist; {path.name} says that the {split} set is there")
    return found, linked


class _Reader:
    """Turns an image and its label file into a scene."""

    def __init__(self, root: Path, names: Sequence[str], report: BoxReport, needs: Needs) -> None:
        self._root, self._names, self._report, self._needs = root, names, report, needs

    def scene(self, image: Path, size: tuple[int, int]) -> Scene:
        height, width = size
        objects = ObjectList(self._report, (height, width))
        labels = _label_path(image)
        if os.path.lexists(labels):  # none says that the image has no object; a link that leads nowhere says nothing
            for number, line in enumerate(read_text(labels).splitlines(), start=1):
                if line.strip():
                    self._add(line.split(), objects, f"{labels}, line {number}")
        return objects.scene(image, self._root)

    def _add(self, words: list[str], objects: ObjectList, where: str) -> None:
        try:
            label, numbers = int(words[0]), np.array(list(map(float, words[1:])))
        except ValueError as error:
            raise DataError(f"data: {where}: {' '.join(words)!r:.100} is not made of numbers") from error
        if not 0 <= label < len(self._names):
            raise DataError(f"data: {where}: class {label}, and names has 0 to {len(self._names) - 1}")
        height, width = objects.size
        is_box = len(numbers) == 4
        if not is_box and (len(numbers) < 6 or len(numbers) % 2):
            raise DataError(
                f"data: {where}: {len(numbers)} numbers after the class; a box has 4 (center and size), a polygon x "
                "and y of 3 points or more"
            )
        if is_box and self._needs == "masks":
            raise DataError(f"data: {where}: a box says nothing about pixels; segmentation needs polygons")
        if is_box:
            x, y, w, h = numbers * (width, height, width, height)
            box, shape = (x - w / 2, y - h / 2, x + w / 2, y + h / 2), None
        else:
            points = numbers.reshape(-1, 2) * (width, height)
            box = (*points.min(axis=0), *points.max(axis=0))
            shape = Shape(polygons=(points.astype(np.float32),)) if self._needs == "masks" else None
        left, top, right, bottom = map(float, box)
        objects.add((left, top, right, bottom), label, where=where, shape=shape)


def _label_path(image: Path) -> Path:
    """The last folder `images` on the way to an image is `labels` on the way to its objects."""
    parts = list(image.parts)
    for index in range(len(parts) - 2, -1, -1):
        if parts[index] == "images":
            parts[index] = "labels"
            break
    return Path(*parts).with_suffix(".txt")


def _size(path: Path) -> tuple[int, int]:
    """Return the image's height and width, upright."""
    try:
        width, height = image_size(path)
    except DataError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            raise DataError(f"data: image {path} does not exist") from None
        return 1, 1  # all images are looked at before training, and what becomes of one like this is said there
    return height, width
