"""Sealing: what is sealed is read by whoever has the key, and by nobody else."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs import sealing
from jobs.errors import NoKeyError
from jobs.settings import get_settings

TEXT = "pässword \U0001f511\nof two lines"


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """The settings of this process, read anew by each test: they name no key until it does."""
    with monkeypatch.context() as changed:
        changed.delenv("RANKZERO_KEY_FILE", raising=False)
        get_settings.cache_clear()
        yield changed
    get_settings.cache_clear()


@pytest.fixture
def key_file(tmp_path: Path, settings: pytest.MonkeyPatch) -> Path:
    """The file of this process's key, with a key in it."""
    path = tmp_path / "key"
    settings.setenv("RANKZERO_KEY_FILE", str(path))
    get_settings.cache_clear()
    sealing.make_key(path)
    return path


@pytest.mark.usefixtures("key_file")
def test_what_was_sealed_is_read_again_and_looks_like_nothing() -> None:
    sealed = sealing.seal(TEXT)
    assert sealing.unseal(sealed) == TEXT
    assert "word" not in sealed
    assert sealing.seal(TEXT) != sealed


def test_nobody_else_on_the_machine_can_read_a_key_that_is_made(key_file: Path) -> None:
    assert key_file.stat().st_mode & 0o777 == 0o600


def test_a_key_that_is_there_is_not_written_over(key_file: Path) -> None:
    before = key_file.read_bytes()
    with pytest.raises(FileExistsError):
        sealing.make_key(key_file)
    assert key_file.read_bytes() == before


def test_a_new_key_before_the_old_one_seals_and_both_open(key_file: Path, tmp_path: Path) -> None:
    old = sealing.seal(TEXT)
    sealing.make_key(tmp_path / "new")
    first = key_file.read_bytes()
    key_file.write_bytes((tmp_path / "new").read_bytes() + first)
    new = sealing.seal(TEXT)
    assert sealing.unseal(old) == TEXT
    key_file.write_bytes(first)
    with pytest.raises(NoKeyError, match="is not the key that this was sealed with"):
        sealing.unseal(new)


def test_with_no_key_the_error_says_how_to_make_one() -> None:
    with pytest.raises(NoKeyError, match=r"python -m jobs\.sealing FILE"):
        sealing.seal(TEXT)


@pytest.mark.parametrize("content", [b"", b"\n", b"not a key", b"\xff\x00"])
def test_a_file_that_holds_no_key_is_said_to_hold_none(key_file: Path, content: bytes) -> None:
    key_file.write_bytes(content)
    with pytest.raises(NoKeyError, match="holds no key"):
        sealing.seal(TEXT)


def test_a_key_that_others_can_read_is_not_used(key_file: Path) -> None:
    key_file.chmod(0o640)
    with pytest.raises(NoKeyError, match=r"can be read by others \(mode 640\)"):
        sealing.seal(TEXT)


def test_the_command_makes_a_key_once_and_names_the_setting(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "jobs.sealing", "keys/first"]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    made = run()
    assert (made.returncode, made.stdout) == (0, f"RANKZERO_KEY_FILE={tmp_path / 'keys' / 'first'}\n")
    again = run()
    assert (again.returncode, again.stderr) == (1, "rankzero: keys/first: File exists\n")
