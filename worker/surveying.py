"""Surveying: what lies in a folder of data, counted within bounds, and without a look into any image.

It reads names, and COCO's lists; nothing here decides what a run trains on, which is the trainer's to find out.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jobs import beneath
from jobs.data_sets import DataSet, Kind, Sample, Split
from worker.clock import clock

IMAGES = frozenset(
    {".avif", ".bmp", ".gif", ".jfif", ".jp2", ".jpeg", ".jpg", ".pbm", ".pgm", ".png", ".pnm", ".ppm", ".tga"}
    | {".tif", ".tiff", ".webp"}
)
"""Names that count as images: those that the trainer takes for such (`trainer.data.images`, which needs torch)."""
MOST_FILES = 200_000
MOST_S = 30.0
"""Seconds for one data root."""
MOST_CLASSES = 1000
MOST_SETS = 200
"""Data sets that are told of one root."""
MOST_LIST_BYTES = 32 * 1024 * 1024
"""A list of COCO's that is larger would take a worker several times its size in memory."""
SAMPLES = 40
SAMPLES_OF_A_CLASS = 2
LONGEST_NAME = 500


class SpentError(Exception):
    """As much was looked at as may be."""


@dataclass
class Budget:
    """How much of a root may be looked at."""

    files: int = field(default_factory=lambda: MOST_FILES)
    until: float = field(default_factory=lambda: clock() + MOST_S)

    def spend(self) -> None:
        """Count one file. Raises SpentError."""
        self.files -= 1
        if self.files < 0 or clock() > self.until:
            raise SpentError


@dataclass
class Finding:
    """What has been found of one data set so far."""

    splits: dict[str, Split] = field(default_factory=dict)
    preview: list[Sample] = field(default_factory=list)
    complete: bool = True
    note: str | None = None


def survey(name: str, root: Path) -> list[DataSet]:
    """Return the data set that a root is, or else those that its folders are; the root itself where it is none."""
    budget = Budget()
    try:
        kind = kind_of(root)
        if kind != "folder":
            return [_looked_at(name, root, kind, budget)]
        below = [(each, kind_of(root / each)) for each in _folders(root)[:MOST_SETS]]
    except OSError as error:
        return [
            _described(name, root, "folder", Finding(complete=False, note=f"it cannot be listed: {error.strerror}"))
        ]
    found = [_looked_at(f"{name}:{each}", root / each, kind, budget) for each, kind in below if kind != "folder"]
    return found or [_described(name, root, "folder", Finding(note="nothing in it is laid out in a known way"))]


def kind_of(folder: Path) -> Kind:
    """Return how a folder is laid out, by the names in it. Raises OSError where it cannot be listed."""
    folders = _folders(folder)
    if any((folder / "annotations").glob("instances_train*.json")):
        return "coco"
    if any((folder / name).is_file() for name in ("data.yaml", "data.yml", "dataset.yaml", "dataset.yml")):
        return "yolo"
    if (folder / "JPEGImages").is_dir():
        return "voc"
    classes = _folders(folder / "train") if {"train", "val"} <= set(folders) else folders
    parent = folder / "train" if {"train", "val"} <= set(folders) else folder
    # A folder of data sets has folders, too, but no images right in them.
    with_images = (each for each in classes if any(_is_image(entry.name) for entry in _some_entries(parent / each)))
    return "image_folder" if next(with_images, None) and next(with_images, None) else "folder"


def _looked_at(name: str, folder: Path, kind: Kind, budget: Budget) -> DataSet:
    finding = Finding()
    look: dict[Kind, Callable[[Path, Finding, Budget], None]] = {"image_folder": _count_images, "coco": _count_lists}
    try:
        if kind in look:
            look[kind](folder, finding, budget)
        else:
            finding.note = "data sets of this kind are not counted"
    except SpentError:
        finding.complete, finding.note = False, "it has more than is looked at"
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        finding.complete, finding.note = False, f"it cannot be read: {error}"[:LONGEST_NAME]
    return _described(name, folder, kind, finding)


def _described(name: str, folder: Path, kind: Kind, finding: Finding) -> DataSet:
    return DataSet(
        name=_text(name),
        path=_text(str(folder)),
        kind=kind,
        splits=finding.splits,
        preview=tuple(finding.preview[:SAMPLES]),
        complete=finding.complete,
        note=None if finding.note is None else _text(finding.note),
        looked_at=datetime.now(UTC),
    )


def _count_images(folder: Path, finding: Finding, budget: Budget) -> None:
    folders = _folders(folder)
    splits = {"train": folder / "train", "val": folder / "val"} if {"train", "val"} <= set(folders) else {"all": folder}
    for split, parent in splits.items():
        counts: dict[str, int] = {}
        try:
            for name in _folders(parent)[:MOST_CLASSES]:
                counts[_text(name)] = 0
                for image in _images(parent / name, budget):
                    counts[_text(name)] += 1
                    if counts[_text(name)] <= SAMPLES_OF_A_CLASS and len(finding.preview) < SAMPLES:
                        shown = _text(os.path.relpath(image, folder))
                        finding.preview.append(Sample(name=shown, classes=(_text(name),)))
        finally:
            finding.splits[split] = Split(samples=sum(counts.values()), classes=counts)


def _count_lists(folder: Path, finding: Finding, budget: Budget) -> None:
    for split in ("train", "val"):
        lists = sorted((folder / "annotations").glob(f"instances_{split}*.json"))
        if not lists:
            finding.note = f"it has no list of the {split} set"
            continue
        budget.spend()
        # No link is followed, which could lead out of the root, and no pipe is waited for.
        with beneath.open_file(str(folder), str(lists[0])) as file:
            if os.fstat(file.fileno()).st_size > MOST_LIST_BYTES:
                finding.complete, finding.note = False, f"{lists[0].name} is too large to be counted here"
                continue
            content: dict[str, Any] = json.loads(file.read())
        names = {each["id"]: _text(str(each["name"])) for each in content["categories"][:MOST_CLASSES]}
        counts = Counter(names[each["category_id"]] for each in content["annotations"] if each["category_id"] in names)
        classes = {name: counts[name] for name in names.values()}
        finding.splits[split] = Split(samples=len(content["images"]), classes=classes)
        first = {each["id"]: _text(str(each["file_name"])) for each in content["images"][: SAMPLES // 2]}
        of_image: dict[object, set[str]] = {key: set() for key in first}
        for each in content["annotations"]:
            if each["image_id"] in of_image and each["category_id"] in names:
                of_image[each["image_id"]].add(names[each["category_id"]])
        finding.preview += [Sample(name=name, classes=tuple(sorted(of_image[key]))) for key, name in first.items()]


def _folders(folder: Path) -> list[str]:
    """The folders in one, by name; links, which may lead out of the root, and what is hidden are none."""
    with os.scandir(folder) as entries:
        found = [each.name for each in entries if each.is_dir(follow_symlinks=False) and not each.name.startswith(".")]
    return sorted(found)


def _some_entries(folder: Path) -> list["os.DirEntry[str]"]:
    with os.scandir(folder) as entries:
        return [entry for entry, _ in zip(entries, range(200), strict=False)]


def _images(folder: Path, budget: Budget) -> Iterator[str]:
    """Every image below a folder, links to folders left out."""
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            budget.spend()
            if _is_image(name):
                yield os.path.join(parent, name)


def _is_image(name: str) -> bool:
    return not name.startswith(".") and os.path.splitext(name)[1].lower() in IMAGES


def _text(name: str) -> str:
    """A name as JSON can hold it: file systems allow any bytes."""
    return name.encode("utf-8", "replace").decode()[:LONGEST_NAME]
