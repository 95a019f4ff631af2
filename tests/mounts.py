"""File systems that the tests mount."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def read_only(folder: Path) -> Iterator[bool]:
    """Have no file below a folder opened for writing meanwhile, and yield whether this machine lets the tests do that.

    Those that are open already go on being written. It holds in this mount namespace.
    """
    is_mounted = _mount("--bind", str(folder), str(folder))
    try:
        yield is_mounted and _mount("-o", "remount,bind,ro", str(folder))
    finally:
        if is_mounted:  # lazily: what was started meanwhile may still have files open there
            subprocess.run(["umount", "--lazy", str(folder)], check=True, capture_output=True)


def _mount(*arguments: str) -> bool:
    try:
        return subprocess.run(["mount", *arguments], check=False, capture_output=True).returncode == 0
    except FileNotFoundError:
        return False
