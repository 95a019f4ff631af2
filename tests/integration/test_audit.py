"""`make audit`: what it says and ends with where the database of vulnerabilities answers, and where it does not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

AUDIT = Path(__file__).parents[2] / ".ci" / "audit"


def audit(bin_folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [AUDIT, bin_folder], capture_output=True, text=True, env=os.environ | environment, check=False, timeout=60
    )


def test_where_the_database_does_not_answer_a_line_says_that_it_was_skipped() -> None:
    nobody = {"https_proxy": "http://127.0.0.1:9", "no_proxy": ""}
    audited = audit(Path(sys.executable).parent, **nobody)
    assert audited.returncode == 0
    assert audited.stdout == ""
    (line,) = audited.stderr.splitlines()
    assert line.startswith("audit skipped: the database of vulnerabilities does not answer at https://")


@pytest.mark.parametrize(
    ("ends_with", "status", "said"),
    [
        (0, 0, ""),
        (1, 1, ""),
        (124, 0, "audit skipped: the database of vulnerabilities did not answer for all packages"),
    ],
    ids=["none-known", "some-known", "too-slow"],
)
def test_what_was_found_is_what_it_ends_with(tmp_path: Path, ends_with: int, status: int, said: str) -> None:
    for name, code in (("python", 0), ("pip-audit", ends_with)):
        (tmp_path / name).write_text(f"#!/bin/sh\nexit {code}\n")
        (tmp_path / name).chmod(0o755)
    audited = audit(tmp_path)
    assert audited.returncode == status
    assert audited.stderr.startswith(said)
    assert bool(audited.stderr) == bool(said)
