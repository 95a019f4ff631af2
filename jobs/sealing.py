"""Sealing: text that only this service can read again, by a key in a file that no database holds.

    python -m jobs.sealing [FILE]

makes the key. It is Fernet's (https://github.com/fernet/spec). Every API and worker of one service needs the same file
(`RANKZERO_KEY_FILE`). It may hold several keys, a line each: the first one seals, and all of them open, so that a new
one can be put before the old.
"""

import os
import stat
import sys
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from jobs.errors import InvalidSettingsError, NoKeyError
from jobs.settings import get_settings

WAY_OUT = "make one with `python -m jobs.sealing FILE`, and name it in RANKZERO_KEY_FILE for every API and worker"


def seal(text: str) -> str:
    """Return `text` as it may be stored. Raises NoKeyError."""
    return _keys().encrypt(text.encode()).decode()


def unseal(sealed: str) -> str:
    """Return what was sealed. Raises NoKeyError, also where it was sealed with another key than this process has."""
    try:
        return _keys().decrypt(sealed).decode()
    except InvalidToken as error:
        raise NoKeyError(
            f"{get_settings().key_file} is not the key that this was sealed with; all of a service need the same one"
        ) from error


def make_key(path: Path) -> None:
    """Make a key that nobody else on the machine can read. Raises FileExistsError: what it has sealed would be lost."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(Fernet.generate_key() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def _keys() -> MultiFernet:
    path = get_settings().key_file
    if path is None:
        raise NoKeyError(f"the service has no key to seal secrets with; {WAY_OUT}")
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            lines = file.read().split()
    except OSError as error:
        raise NoKeyError(f"the key to seal secrets with: {path}: {error.strerror}; {WAY_OUT}") from error
    if mode & 0o077:
        raise NoKeyError(f"{path} can be read by others (mode {mode:o}); chmod 600 it, or make another key")
    try:
        return MultiFernet([Fernet(line) for line in lines])
    except ValueError as error:
        raise NoKeyError(f"{path} holds no key; {WAY_OUT}") from error


def main() -> None:
    """Make the key in the file named, or in that of the settings."""
    if len(sys.argv) > 2 or "-h" in sys.argv or "--help" in sys.argv:
        sys.exit("usage: python -m jobs.sealing [FILE]")
    try:
        path = Path(sys.argv[1]) if len(sys.argv) == 2 else get_settings().key_file
    except InvalidSettingsError as error:
        sys.exit(f"rankzero: {error}")
    if path is None:
        sys.exit("rankzero: name the file: python -m jobs.sealing FILE")
    try:
        make_key(path)
    except OSError as error:
        sys.exit(f"rankzero: {path}: {error.strerror}")
    sys.stdout.write(f"RANKZERO_KEY_FILE={path.absolute()}\n")


if __name__ == "__main__":
    main()
