"""The marks of storages: the file in a folder by which all who share it know that it is the same one."""

from pathlib import Path

MARK = ".rankzero-storage"
"""File in a storage's folder that holds its id: two hosts that find the same id there see the same files."""


def read_mark(folder: Path) -> str | None:
    """Return the id of the storage that a folder is, or None where it is none, or out of reach."""
    try:
        text = (folder / MARK).read_text()
    except (OSError, UnicodeDecodeError):
        return None
    return text.strip() if text.endswith("\n") and text.strip() else None
