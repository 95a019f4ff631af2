"""COCO's layout: `annotations/instances_{train,val}*.json` beside folders of images (cocodataset.org, Data format)."""

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from trainer.data.data_files import naming, read_bytes
from trainer.data.run_lengths import check_run_lengths
from trainer.data.scenes import BoxReport, Needs, ObjectList, Scene, Scenes, Shape, Survey, class_name, declared_size
from trainer.errors import DataError


def is_layout_of(root: Path) -> bool:
    """Return whether a folder has this layout."""
    return any((root / "annotations").glob("instances_train*.json"))


def read(root: Path, *, needs: Needs, survey: Survey) -> Scenes:  # noqa: ARG001  (its files say how large images are)
    """Read both sets; the classes are the categories of the training set's file, by their ids.

    Raises DataError naming the file, and the id of what in it cannot be taken as it is.
    """
    files = {split: _instances(root, split) for split in ("train", "val")}
    contents = {split: _content(path) for split, path in files.items()}
    categories = _categories(contents["train"], files["train"])
    report = BoxReport()
    sets = {
        split: _Reader(path, root=root, split=split, categories=categories, report=report, needs=needs).scenes(
            contents[split]
        )
        for split, path in files.items()
    }
    return Scenes(tuple(categories[key] for key in sorted(categories)), sets["train"], sets["val"], report.warnings())


def _instances(root: Path, split: str) -> Path:
    found = sorted((root / "annotations").glob(f"instances_{split}*.json"))
    if len(found) == 1:
        return found[0]
    names = ", ".join(path.name for path in found)
    wrong = f"more than one file of the {split} set: {names}" if found else f"no instances_{split}….json"
    raise DataError(f"data: {root / 'annotations'} has {wrong}")


def _content(path: Path) -> dict[str, Any]:
    data = read_bytes(path)
    with naming(path, " is no JSON"):
        content = json.loads(data)
    missing = [name for name in ("images", "annotations", "categories") if not isinstance(_get(content, name), list)]
    if missing:
        raise DataError(f"data: {path} has no list of {missing[0]!r}, as COCO's instances have")
    return dict(content)


def _get(content: Any, name: str) -> Any:
    return content.get(name) if isinstance(content, dict) else None


def _categories(content: Mapping[str, Any], path: Path) -> dict[int, str]:
    with naming(path, ": a category without id and name"):
        categories = [(int(each["id"]), class_name(each["name"])) for each in content["categories"]]
    if not categories:
        raise DataError(f"data: {path} has no categories")
    if twice := _twice(key for key, _ in categories):
        raise DataError(f"data: {path}: category {twice[0]} is listed twice")
    return dict(categories)


def _twice(keys: Iterable[Any]) -> list[Any]:
    return [key for key, count in Counter(keys).items() if count > 1]


class _Reader:
    """Turns one set's file into scenes."""

    def __init__(
        self, path: Path, *, root: Path, split: str, categories: dict[int, str], report: BoxReport, needs: Needs
    ) -> None:
        self._root, self._path, self._categories = root, path, categories
        self._report, self._needs = report, needs
        # train2017 for instances_train2017.json; else whatever begins with the set's name.
        own = root / path.stem.removeprefix("instances_")
        places = [own, *sorted(root.glob(f"{split}*")), *sorted((root / "images").glob(f"{split}*")), root / "images"]
        self._folders = list(dict.fromkeys(place for place in places if place.is_dir()))
        self._labels = {key: label for label, key in enumerate(sorted(categories))}

    def scenes(self, content: Mapping[str, Any]) -> tuple[Scene, ...]:
        self._refuse_other_categories(content)
        of_image: dict[int, list[dict[str, Any]]] = defaultdict(list)
        for annotation in content["annotations"]:
            with naming(self._path, f": annotation {_get(annotation, 'id')} has no image_id"):
                of_image[annotation["image_id"]].append(annotation)
        with naming(self._path, ": an id of an image has to be a number or a text"):
            twice = _twice(_get(image, "id") for image in content["images"])
        if twice:
            raise DataError(f"data: {self._path}: image {twice[0]} is listed twice")
        scenes = [self._scene(image, of_image.pop(_get(image, "id"), [])) for image in content["images"]]
        if of_image:
            key, annotations = next(iter(of_image.items()))
            raise DataError(
                f"data: {self._path}: annotation {_get(annotations[0], 'id')} is of image {key}, which is not listed"
            )
        return tuple(scenes)

    def _refuse_other_categories(self, content: Mapping[str, Any]) -> None:
        for key, name in _categories(content, self._path).items():
            if self._categories.get(key) != name:
                raise DataError(
                    f"data: {self._path}: category {key} ({name!r}) is {self._categories.get(key)!r} in the train set; "
                    "both sets need the same categories"
                )

    def _scene(self, image: Any, annotations: list[dict[str, Any]]) -> Scene:
        with naming(self._path, f": image {_get(image, 'id')} needs file_name, width and height"):
            size = declared_size(image["width"], image["height"])
            path = self._image_path(str(image["file_name"]))
        objects = ObjectList(self._report, size)
        for annotation in annotations:
            self._add(annotation, objects)
        return objects.scene(path, self._root)

    def _image_path(self, file_name: str) -> Path:
        candidates = [folder / file_name for folder in self._folders] + [self._root / file_name]
        for candidate in candidates:
            if candidate.exists():
                return candidate
        where = ", ".join(map(str, self._folders)) or f"{self._root} (it has no folder of images)"
        raise DataError(f"data: image {file_name} of {self._path} is not in {where}")

    def _add(self, annotation: dict[str, Any], objects: ObjectList) -> None:
        where = f"{self._path}, annotation {annotation.get('id')}"
        with naming(where, ": category_id has to be the id of a category"):
            label = self._labels.get(annotation.get("category_id", -1))
        if label is None:
            raise DataError(f"data: {where}: there is no category {annotation.get('category_id')}")
        with naming(where, ": bbox has to be [x, y, width, height]"):
            left, top, width, height = map(float, annotation["bbox"])
        objects.add(
            (left, top, left + width, top + height),
            label,
            where=where,
            is_crowd=_is_crowd(annotation, where),
            area=_area(annotation, where),
            shape=_shape(annotation.get("segmentation"), objects.size, where) if self._needs == "masks" else None,
        )


def _is_crowd(annotation: Mapping[str, Any], where: str) -> bool:
    given = annotation.get("iscrowd") or 0
    if given not in (0, 1):  # "0" would be true
        raise DataError(f"data: {where}: iscrowd has to be 0 or 1")
    return bool(given)


def _area(annotation: Mapping[str, Any], where: str) -> float | None:
    if (given := annotation.get("area")) is None:
        return None
    with naming(where, ": area has to be a number of pixels"):
        area = float(given)
        if not 0 <= area < math.inf:
            raise ValueError(f"{area}")
        return area


def _shape(segmentation: Any, size: tuple[int, int], where: str) -> Shape:
    if isinstance(segmentation, dict) and "counts" in segmentation:
        if segmentation.get("size") != list(size):
            raise DataError(
                f"data: {where}: run lengths of size {segmentation.get('size')} in an image of {list(size)}"
            )
        with naming(where, ": broken run lengths"):
            check_run_lengths(segmentation["counts"], size)
        return Shape(run_lengths=segmentation)
    with naming(where, ": segmentation has to be polygons or run lengths"), np.errstate(over="ignore"):
        polygons = tuple(np.array(part, dtype=np.float32).reshape(-1, 2) for part in segmentation)
    if not polygons:
        raise DataError(f"data: {where}: it has no segmentation")
    return Shape(polygons=polygons)
