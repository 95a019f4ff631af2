"""Data folders: what lies below one. What cannot be listed is an error, and what is passed over is told."""

import os
from pathlib import Path
from typing import NoReturn

from trainer.data.data_files import check_folder
from trainer.data.images import EXTENSIONS
from trainer.errors import DataError


def subfolders(folder: Path) -> tuple[list[str], list[str]]:
    """Return the names of the folders in one, links to folders among them, and those of links that lead nowhere.

    Raises DataError naming a folder that cannot be listed.
    """
    found: list[str] = []
    dead: list[str] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if os.path.isdir(entry.path):  # unlike the entry's own method, it says no of a link to itself
                    found.append(entry.name)
                elif entry.is_symlink() and not os.path.exists(entry.path):
                    dead.append(entry.name)
    except OSError as error:
        _refuse(error)
    return sorted(found), sorted(dead)


def image_files(folder: Path) -> tuple[list[Path], list[Path]]:
    """Return every image below a folder, in an order that no file system decides, and the folders passed over for being
    links, behind which a loop could lie. What is hidden does not count.

    Raises DataError naming a folder that cannot be listed, or may not be.
    """
    check_folder(folder)
    images: list[Path] = []
    linked: list[Path] = []
    for parent, folders, names in os.walk(folder, onerror=_refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        linked += [path for name in folders if (path := Path(parent, name)).is_symlink()]
        images += [Path(parent, name) for name in names if _is_image(name)]
    return sorted(images), sorted(linked)


def _is_image(name: str) -> bool:
    return not name.startswith(".") and os.path.splitext(name)[1].lower() in EXTENSIONS


def _refuse(error: OSError) -> NoReturn:
    raise DataError(f"data: folder {error.filename} cannot be listed: {error.strerror}") from error
