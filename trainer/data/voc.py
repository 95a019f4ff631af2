"""VOC's layout: JPEGImages, Annotations, SegmentationClass and ImageSets (Everingham et al., 2010, the devkit's)."""

from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from trainer.data.data_files import naming, read_bytes, read_text
from trainer.data.images import EXTENSIONS
from trainer.data.masks import read_mask
from trainer.data.scenes import VOID, BoxReport, Needs, ObjectList, Scene, Scenes, Survey, declared_size
from trainer.errors import DataError

_SETS = {"boxes": "Main", "masks": "Segmentation"}
_Objects = list[tuple[str, tuple[float, float, float, float]]]


def is_layout_of(root: Path) -> bool:
    """Return whether a folder has this layout."""
    return (root / "JPEGImages").is_dir()


def read(root: Path, *, needs: Needs, survey: Survey) -> Scenes:
    """Read both sets: Main with its boxes, or Segmentation with its masks.

    The classes are, of boxes, the names that the training set's objects have, sorted. Of masks they are the palette's
    indices from 1 to the largest in the training set; their names are what ImageSets/Main has lists of
    (`aeroplane_train.txt`), in that order, or else `class 1` and so on.

    Raises DataError naming the file that is missing or cannot be taken as it is.
    """
    lists = root / "ImageSets" / _SETS[needs]
    ids = {split: _ids(lists / f"{split}.txt") for split in ("train", "val")}
    with naming(folder := root / "JPEGImages"):
        images = {path.stem: path for path in sorted(folder.iterdir()) if path.suffix.lower() in EXTENSIONS}
    for split, members in ids.items():
        for each in members:
            if each not in images:
                raise DataError(f"data: {folder} has no image {each!r}, which {split}.txt of {lists} lists")
    return _read_boxes(root, ids, images) if needs == "boxes" else _read_masks(root, ids, images, survey)


def _ids(path: Path) -> list[str]:
    return [line.strip() for line in read_text(path).splitlines() if line.strip()]


def _read_boxes(root: Path, ids: dict[str, list[str]], images: dict[str, Path]) -> Scenes:
    report = BoxReport()
    annotations = {
        split: [_Annotation(root / "Annotations" / f"{each}.xml", images[each]) for each in members]
        for split, members in ids.items()
    }
    names = sorted({name for annotation in annotations["train"] for name, _ in annotation.objects})
    labels = {name: label for label, name in enumerate(names)}
    sets = {
        split: tuple(annotation.scene(root, labels, report) for annotation in members)
        for split, members in annotations.items()
    }
    return Scenes(tuple(names), sets["train"], sets["val"], report.warnings())


class _Annotation:
    """One file of objects; a box is of whole pixels counted from 1, the last one included."""

    def __init__(self, path: Path, image: Path) -> None:
        self.path, self.image = path, image
        content = read_bytes(path, missing="an image without objects has a file without them")
        with naming(path, " is no XML"):
            tree = ElementTree.fromstring(content)  # noqa: S314  (the user's own file; expat bounds entity expansion)
        with naming(path):
            self.size = declared_size(_text(tree, "size/width"), _text(tree, "size/height"))
            self.objects: _Objects = [
                (
                    _text(each, "name"),
                    (
                        float(_text(each, "bndbox/xmin")) - 1,
                        float(_text(each, "bndbox/ymin")) - 1,
                        float(_text(each, "bndbox/xmax")),
                        float(_text(each, "bndbox/ymax")),
                    ),
                )
                for each in tree.iter("object")
            ]

    def scene(self, root: Path, labels: dict[str, int], report: BoxReport) -> Scene:
        found = ObjectList(report, self.size)
        for name, box in self.objects:
            if name not in labels:
                raise DataError(f"data: {self.path}: no image of the train set has a {name!r}")
            found.add(box, labels[name], where=str(self.path))
        return found.scene(self.image, root)


def _text(element: ElementTree.Element, path: str) -> str:
    text = (element.findtext(path) or "").strip()
    if not text:
        raise ValueError(f"a {element.tag} without {path}")
    return text


def _read_masks(root: Path, ids: dict[str, list[str]], images: dict[str, Path], survey: Survey) -> Scenes:
    masks = {split: [root / "SegmentationClass" / f"{each}.png" for each in members] for split, members in ids.items()}
    surveyed = iter(survey([path for members in masks.values() for path in members], _palette_indices))
    found = {split: [next(surveyed) for _ in members] for split, members in masks.items()}
    in_train = {index for _, indices in found["train"] for index in indices}
    if not in_train - {0}:
        raise DataError(f"data: no mask of the train set of {root} has a class other than 0, the background")
    for path, (_, indices) in zip(masks["val"], found["val"], strict=True):
        if unknown := set(indices) - in_train - {0}:
            raise DataError(f"data: {path}: no mask of the train set has class {min(unknown)}")
    sets = {
        split: tuple(
            ObjectList(BoxReport(), (height, width)).scene(images[each], root, mask=path)
            for each, path, ((height, width), _) in zip(ids[split], masks[split], found[split], strict=True)
        )
        for split in ids
    }
    return Scenes(_palette_names(root, max(in_train)), sets["train"], sets["val"])


def _palette_indices(path: Path) -> tuple[tuple[int, int], list[int]]:
    """Return a mask's height and width, and the classes in it."""
    pixels = read_mask(path)
    return (pixels.shape[0], pixels.shape[1]), [index for index in np.unique(pixels).tolist() if index != VOID]


def _palette_names(root: Path, largest: int) -> tuple[str, ...]:
    lists: Sequence[Path] = sorted((root / "ImageSets" / "Main").glob("?*_train.txt"))
    named = [path.name.removesuffix("_train.txt") for path in lists]
    if len(named) < largest:
        named = [f"class {index}" for index in range(1, largest + 1)]
    return tuple(named)
