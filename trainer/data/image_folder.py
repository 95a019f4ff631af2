"""An image folder: which images there are of each class, split for validation or with a split of its own."""

import hashlib
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from trainer.data.folders import image_files, subfolders
from trainer.data.images import EXTENSIONS
from trainer.errors import DataError


@dataclass(frozen=True)
class ImageFile:
    """One image and the index of its class."""

    path: Path
    label: int


@dataclass(frozen=True)
class ImageFolder:
    """What a folder holds; reading the images comes later."""

    root: Path
    class_names: tuple[str, ...]
    train: tuple[ImageFile, ...]
    val: tuple[ImageFile, ...]
    warnings: tuple[str, ...]

    @property
    def samples(self) -> str:
        """How many images are in each set, and a digest of their names below the root: no matter where it lies."""
        return f"{len(self.train)} train, {len(self.val)} val, {_digest(self.root, self.train, self.val)}"

    def without(self, broken: Collection[Path]) -> Self:
        """Return the folder without some of its files. Raises DataError naming what is left without any."""
        train, val = (tuple(file for file in files if file.path not in broken) for files in (self.train, self.val))
        labels = {file.label for file in train}
        for label, name in enumerate(self.class_names):
            if label not in labels:
                raise DataError(f"data: class {name!r} has no image that can be read, of those for training")
        if not val:
            raise DataError("data: none of the images for validation can be read")
        return replace(self, train=train, val=val)


def open_image_folder(root: Path, *, val_fraction: float) -> ImageFolder:
    """List the images of root/train/CLASS/… and root/val/CLASS/…, or else of root/CLASS/… split by `val_fraction`.

    The train folder says which classes there are, in the order of their names. Hidden files and folders are left out,
    with a warning where a class folder is hidden. Raises DataError naming the folder that is missing or has no images.
    """
    if not os.path.isdir(root):  # unlike pathlib's own, it raises nothing
        raise DataError(
            f"data: {root} is not a folder" if os.path.lexists(root) else f"data: folder {root} does not exist"
        )
    own_split = _has_own_split(root)
    listing = _Listing()
    if own_split:
        class_names = listing.class_names(root / "train")
        train = listing.files(root / "train", class_names)
        val = listing.val_files(root / "val", class_names)
    else:
        class_names = listing.class_names(root)
        train, val = _split(root, listing.files(root, class_names), val_fraction)
    if not val:
        where = root / "val" if own_split else f"{root} (val_fraction {val_fraction} of {len(train)} images)"
        raise DataError(f"data: {where} leaves no image for validation")
    return ImageFolder(root, class_names, tuple(train), tuple(val), tuple(listing.warnings))


def _has_own_split(root: Path) -> bool:
    """Whether there are a train and a val folder; one without the other is no class, whatever else lies beside it."""
    found = [name for name in ("train", "val") if os.path.isdir(root / name)]
    if len(found) == 1:
        missing = "val" if found == ["train"] else "train"
        others = [name for name in subfolders(root)[0] if name not in found]
        beside = f" (beside it: {', '.join(others[:5])})" if others else ""
        raise DataError(
            f"data: {root} has a {found[0]} folder and no {missing} folder{beside}; call the {missing} set "
            f"{missing!r}, or name {root / found[0]}, of which a val_fraction is kept for validation"
        )
    return bool(found)


class _Listing:
    """Reads folders, collecting what the user should know about them."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def class_names(self, folder: Path) -> tuple[str, ...]:
        names = self._folders(folder)
        if not names:
            raise DataError(f"data: {folder} has no class folders")
        if len(names) == 1:
            raise DataError(f"data: {folder} has only one class, {names[0]!r}; classification needs two or more")
        return tuple(names)

    def files(self, folder: Path, class_names: Sequence[str]) -> list[ImageFile]:
        files: list[ImageFile] = []
        for label, name in enumerate(class_names):
            images = self._images(folder / name)
            if not images:
                raise DataError(f"data: class folder {folder / name} has no images ({', '.join(sorted(EXTENSIONS))})")
            files += [ImageFile(path, label) for path in images]
        return files

    def val_files(self, folder: Path, class_names: Sequence[str]) -> list[ImageFile]:
        """A validation set may lack classes, but cannot have any that training never sees."""
        labels = {name: label for label, name in enumerate(class_names)}
        files: list[ImageFile] = []
        for name in self._folders(folder):
            if name not in labels:
                raise DataError(f"data: {folder / name} is of a class that the train folder does not have")
            files += [ImageFile(path, labels[name]) for path in self._images(folder / name)]
        return files

    def _folders(self, folder: Path) -> list[str]:
        names, dead = subfolders(folder)
        hidden = [name for name in names if name.startswith(".")]
        self.warnings += [f"data: hidden folder {folder / name} is ignored" for name in hidden]
        self.warnings += [f"data: link {folder / name} leads nowhere and is ignored" for name in dead]
        return [name for name in names if name not in hidden]

    def _images(self, folder: Path) -> list[Path]:
        images, linked = image_files(folder)
        self.warnings += [f"data: {path} is a link to a folder inside of a class, and is ignored" for path in linked]
        return images


def _split(root: Path, files: Sequence[ImageFile], val_fraction: float) -> tuple[list[ImageFile], list[ImageFile]]:
    """Keep back `val_fraction` of each class, chosen by a hash of the file's name.

    Neither the seed nor the devices have a say: two runs that are compared must have been validated on the same images,
    and an image added later moves few others across.
    """
    train: list[ImageFile] = []
    val: list[ImageFile] = []
    by_label: dict[int, list[ImageFile]] = {}
    for file in files:
        by_label.setdefault(file.label, []).append(file)
    for members in by_label.values():
        ranked = sorted(members, key=lambda file: _hash(file.path.relative_to(root)))
        kept_back = min(round(len(members) * val_fraction), len(members) - 1)
        val += ranked[:kept_back]
        train += ranked[kept_back:]
    return sorted(train, key=lambda file: file.path), sorted(val, key=lambda file: file.path)


def _digest(root: Path, *sets: Sequence[ImageFile]) -> str:
    """Return the sha256 of the names below `root`, set by set; the images themselves would take too long to read."""
    digest = hashlib.sha256()
    skipped = len(os.fsencode(root / "_")) - 1
    for files in sets:
        for file in files:
            digest.update(os.fsencode(file.path)[skipped:] + b"\0")
        digest.update(b"\0")
    return f"sha256 {digest.hexdigest()[:16]}"


def _hash(path: Path) -> bytes:
    return hashlib.sha256(os.fsencode(path.as_posix())).digest()
