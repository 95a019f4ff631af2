"""Trials: what they leave on the disk."""

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from trainer.trials import temporary_folder

KILLED = """
import os, signal
from trainer.trials import temporary_folder

with temporary_folder("bench") as folder:
    (folder / "images").mkdir()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_has_left_is_removed_by_the_next_and_what_is_in_use_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    killed = subprocess.run([sys.executable, "-c", KILLED], check=False)
    assert killed.returncode == -signal.SIGKILL
    (abandoned,) = tmp_path.iterdir()

    with temporary_folder("bench") as first:
        assert not abandoned.exists()
        with temporary_folder("bench") as second:
            assert sorted(tmp_path.iterdir()) == sorted([first, second])
        assert list(tmp_path.iterdir()) == [first]
    assert list(tmp_path.iterdir()) == []
