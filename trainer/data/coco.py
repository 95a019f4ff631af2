"""COCO's layout: `annotations/instances_{train,val}*.json` beside folders of images (cocodataset.org, Data format)."""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from trainer.data.scenes import BoxReport, Needs, ObjectList, Scene, Scenes, Shape, Survey
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
    try:
        content = json.loads(path.read_bytes())
    except ValueError as error:
        raise DataError(f"data: {path} is no JSON: {error}") from error
    missing = [name for name in ("images", "annotations", "categories") if not isinstance(_get(content, name), list)]
    if missing:
        raise DataError(f"data: {path} has no list of {missing[0]!r}, as COCO's instances have")
    return dict(content)


def _get(content: Any, name: str) -> Any:
    return content.get(name) if isinstance(content, dict) else None


def _categories(content: Mapping[str, Any], path: Path) -> dict[int, str]:
    try:
        categories = {int(each["id"]): str(each["name"]) for each in content["categories"]}
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"data: {path}: a category without id and name ({error!r})") from error
    if not categories:
        raise DataError(f"data: {path} has no categories")
    return categories


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
            try:
                of_image[annotation["image_id"]].append(annotation)
            except (KeyError, TypeError) as error:
                raise DataError(f"data: {self._path}: annotation {_get(annotation, 'id')} has no image_id") from error
        seen = Counter(_get(image, "id") for image in content["images"])
        if twice := [key for key, count in seen.items() if count > 1]:
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
        try:
            size = int(image["height"]), int(image["width"])
            path = self._image_path(str(image["file_name"]))
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(
                f"data: {self._path}: image {_get(image, 'id')} needs file_name, width and height ({error!r})"
            ) from error
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
        label = self._labels.get(annotation.get("category_id", -1))
        if label is None:
            raise DataError(f"data: {where}: there is no category {annotation.get('category_id')}")
        try:
            left, top, width, height = map(float, annotation["bbox"])
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"data: {where}: bbox has to be [x, y, width, height]") from error
        area = annotation.get("area")
        objects.add(
            (left, top, left + width, top + height),
            label,
            where=where,
            is_crowd=bool(annotation.get("iscrowd", 0)),
            area=float(area) if area is not None else None,
            shape=_shape(annotation.get("segmentation"), objects.size, where) if self._needs == "masks" else None,
        )


def _shape(segmentation: Any, size: tuple[int, int], where: str) -> Shape:
    if isinstance(segmentation, dict) and "counts" in segmentation:
        if segmentation.get("size") != list(size):
            raise DataError(
                f"data: {where}: run lengths of size {segmentation.get('size')} in an image of {list(size)}"
            )
        return Shape(run_lengths=segmentation)
    try:
        polygons = tuple(np.array(part, dtype=np.float32).reshape(-1, 2) for part in segmentation)
    except (TypeError, ValueError) as error:
        raise DataError(f"data: {where}: segmentation has to be polygons or run lengths") from error
    if not polygons:
        raise DataError(f"data: {where}: it has no segmentation")
    return Shape(polygons=polygons)
