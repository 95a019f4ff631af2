"""Scenes: images with the objects in them, as annotation tools leave them on disk, and which layout a folder has."""

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from trainer.data.data_files import naming
from trainer.errors import DataError

Needs = Literal["boxes", "masks"]
"""What of the objects is asked for: where they are, or which pixels they have."""
Survey = Callable[[Sequence[Path], Callable[[Path], Any]], Sequence[Any]]
"""Calls a function with each of many files and returns what it says of them, in their order; that has to be JSON. It
may share the work out among processes, so the function is one of a module."""

VOID = 255
"""The class of pixels that count neither in the loss nor in a metric; VOC's word and number for them."""


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """The pixels of one object: the union of polygons, or COCO's run lengths."""

    polygons: tuple[NDArray[np.float32], ...] = ()
    """Each [points, 2]: x and y in pixels."""
    run_lengths: dict[str, object] | None = None
    """`size` (height, width) and `counts`, compressed or as numbers: what pycocotools calls an RLE."""


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """One image and what is in it. Everything is in pixels of the image as it is on disk, turned upright."""

    path: Path
    name: str
    """The image's path below the data folder, with forward slashes."""
    size: tuple[int, int]
    """Height and width."""
    boxes: NDArray[np.float64]
    """[objects, 4]: left, top, right, bottom."""
    labels: NDArray[np.int64]
    """[objects]: indices of their classes."""
    is_crowd: NDArray[np.bool_]
    """[objects]: whether one is a region of many that nobody has told apart."""
    areas: NDArray[np.float64]
    """[objects]: square pixels."""
    shapes: tuple[Shape, ...] = ()
    """One for each object, where masks are asked for and the layout outlines objects."""
    mask: Path | None = None
    """Image of the classes of all pixels, where the layout has one."""


@dataclass(frozen=True, eq=False)
class Scenes:
    """What a data folder holds; reading the images comes later."""

    class_names: tuple[str, ...]
    """Names of the labels, in their order."""
    train: tuple[Scene, ...]
    val: tuple[Scene, ...]
    warnings: tuple[str, ...] = ()

    @property
    def samples(self) -> str:
        """How many scenes each set has, and a digest of their names and numbers of objects."""
        digest = hashlib.sha256()
        for scenes in (self.train, self.val):
            for scene in scenes:
                digest.update(scene.name.encode(errors="surrogateescape") + b"\0%d\0" % len(scene.labels))
            digest.update(b"\0")
        return f"{len(self.train)} train, {len(self.val)} val, sha256 {digest.hexdigest()[:16]}"

    def without(self, broken: Collection[Path], *, warnings: Sequence[str]) -> "Scenes":
        """Return the scenes whose images are not among `broken`, with warnings that say so.

        Raises DataError for a set in which no object is left.
        """
        train, val = (
            tuple(scene for scene in members if scene.path not in broken) for members in (self.train, self.val)
        )
        rest = replace(self, train=train, val=val, warnings=(*self.warnings, *warnings))
        rest.refuse_without_objects("that can be used")
        return rest

    def repeats(self) -> Iterator[str]:
        """Yield what the user should know of images that are listed more than once."""
        train, val = (Counter(scene.name for scene in members) for members in (self.train, self.val))
        if shared := sorted(train.keys() & val.keys()):
            said = f"{len(shared)} (first: {shared[0]})"
            yield f"data: images that are in both sets, so that validation is on what was trained on: {said}"
        for split, counts in (("train", train), ("val", val)):
            if twice := sorted(name for name, count in counts.items() if count > 1):
                yield f"data: images that the {split} set lists more than once: {len(twice)} (first: {twice[0]})"

    def refuse_without_objects(self, which: str) -> None:
        """Raise DataError for a set that has no image, or no object in any; `which` says what is looked at of it."""
        for name, members in (("train", self.train), ("val", self.val)):
            if not members:
                raise DataError(f"data: the {name} set {which} has no image")
            if not any(len(scene.labels) or scene.mask is not None for scene in members):
                raise DataError(f"data: no image of the {name} set {which} has an object")


@dataclass
class ObjectList:
    """Collects the objects of one image, with what is wrong about them put right."""

    report: "BoxReport"
    size: tuple[int, int]
    """Height and width of the image."""
    boxes: list[tuple[float, float, float, float]] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)
    is_crowd: list[bool] = field(default_factory=list)
    areas: list[float] = field(default_factory=list)
    shapes: list[Shape] = field(default_factory=list)

    def add(
        self,
        box: tuple[float, float, float, float],
        label: int,
        *,
        where: str,
        is_crowd: bool = False,
        area: float | None = None,
        shape: Shape | None = None,
    ) -> None:
        """Take an object in: its box clipped to the image, and left out where nothing of it is left.

        `area` is the object's own, where it is known better than from its box. Raises DataError for a box or an outline
        that is no numbers, naming `where`.
        """
        if not np.isfinite(box).all():
            raise DataError(f"data: {where}: the box {box} is not made of numbers")
        for polygon in () if shape is None else shape.polygons:
            if not (np.abs(polygon) <= _FARTHEST).all():  # said so that NaN is refused as well
                raise DataError(f"data: {where}: its outline has points that are no numbers or nowhere near the image")
        height, width = self.size
        left, right = (min(max(x, 0.0), float(width)) for x in (box[0], box[2]))
        top, bottom = (min(max(y, 0.0), float(height)) for y in (box[1], box[3]))
        if right <= left or bottom <= top:
            self.report.dropped.append(where)
            return
        if max(abs(new - old) for new, old in zip((left, top, right, bottom), box, strict=True)) > _ROUNDED:
            self.report.clipped.append(where)
        self.boxes.append((left, top, right, bottom))
        self.labels.append(label)
        self.is_crowd.append(is_crowd)
        self.areas.append((right - left) * (bottom - top) if area is None else area)
        if shape is not None:
            self.shapes.append(shape)

    def scene(self, path: Path, root: Path, *, mask: Path | None = None) -> Scene:
        """Return the image with the objects so far."""
        return Scene(
            path=path,
            name=path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix(),
            size=self.size,
            boxes=np.array(self.boxes, dtype=np.float64).reshape(-1, 4),
            labels=np.array(self.labels, dtype=np.int64),
            is_crowd=np.array(self.is_crowd, dtype=np.bool_),
            areas=np.array(self.areas, dtype=np.float64),
            shapes=tuple(self.shapes),
            mask=mask,
        )


def declared_size(width: Any, height: Any) -> tuple[int, int]:
    """Return an image's height and width as annotations declare them. Raises ValueError for what is no size."""
    sides = float(height), float(width)
    if not all(1 <= side <= _LONGEST and side.is_integer() for side in sides):
        raise ValueError(f"an image of {width} by {height} pixels")
    return int(sides[0]), int(sides[1])


def class_name(given: Any) -> str:
    """Return what an annotation file calls a class, as text. Raises ValueError for what is no name."""
    if isinstance(given, (list, dict)):  # which YAML may nest without end
        raise ValueError(f"a {type(given).__name__} is no name of a class")
    if given is None or not str(given).strip():
        raise ValueError(f"{given!r} is no name of a class")
    return str(given)


_LONGEST = 2**31 - 1
"""Pixels of a side: more, and no format of images could hold it."""
_FARTHEST = 1e6
"""Pixels from the corner that an outline's points may have: pycocotools allocates memory for each pixel on the way."""
_ROUNDED = 1.0
"""Pixels by which tools put a box beyond the image without meaning it, by rounding or by counting from 0."""


class BoxReport:
    """What had to be put right about the boxes of a data set."""

    def __init__(self) -> None:
        self.clipped: list[str] = []
        """Where a box reached beyond its image."""
        self.dropped: list[str] = []
        """Where a box had no area, or none within its image."""

    def warnings(self) -> tuple[str, ...]:
        """Return a sentence for each kind that there is."""
        kinds = (
            (self.clipped, "boxes that reach beyond their image are clipped to it"),
            (self.dropped, "boxes that have no area within their image are left out"),
        )
        return tuple(f"data: {what}: {len(found)} (first: {found[0]})" for found, what in kinds if found)


def one_by_one(paths: Sequence[Path], look: Callable[[Path], Any]) -> Sequence[Any]:
    """A survey in this process alone."""
    return [look(path) for path in paths]


def open_scenes(root: Path, *, needs: Needs, survey: Survey = one_by_one) -> Scenes:
    """Read the scenes of a folder in the layout of VOC, COCO or YOLO, told by what lies in it.

    `survey` is called once at most, where a layout does not say everything without its images or masks.

    Raises DataError naming the folder, or the file and what in it cannot be taken as it is.
    """
    from trainer.data import coco, voc, yolo  # each builds on this module

    layouts = {"VOC": voc, "COCO": coco, "YOLO": yolo}
    with naming(root):  # such as a folder that only others may look into
        if not root.is_dir():
            raise DataError(f"data: {root} is not a folder" if root.exists() else f"data: folder {root} does not exist")
        found = [name for name, layout in layouts.items() if layout.is_layout_of(root)]
    if len(found) != 1:
        seen = f"looks like {' and '.join(found)}" if found else "has none of the layouts that can be read"
        raise DataError(
            f"data: {root} {seen}; VOC has JPEGImages and ImageSets, COCO annotations/instances_train….json, YOLO "
            "data.yaml or dataset.yaml, and a folder is read as one of them"
        )
    scenes: Scenes = layouts[found[0]].read(root, needs=needs, survey=survey)
    scenes.refuse_without_objects(f"of {root}")
    if needs == "masks" and (count := len(scenes.class_names)) >= VOID:
        raise DataError(f"data: {root} has {count} classes, and a mask has one byte a pixel: {VOID - 1} of them fit")
    return replace(scenes, warnings=(*scenes.warnings, *scenes.repeats()))
