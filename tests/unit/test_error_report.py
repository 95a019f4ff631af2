"""The error file of a run: the first rank that writes it has the word."""

import errno
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

import pytest

from trainer.error_report import ErrorReport
from trainer.errors import Cause


def report(message: str) -> ErrorReport:
    return ErrorReport(cause=Cause.EXCEPTION, message=message, time=datetime.now(UTC))


def without_hard_links(*_: object) -> NoReturn:
    raise OSError(errno.EPERM, os.strerror(errno.EPERM))


@pytest.mark.parametrize("has_hard_links", [True, False])
def test_the_first_to_write_an_error_file_has_the_word(
    has_hard_links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_hard_links:  # as on FAT, or some network file systems: none can be mounted by a test
        monkeypatch.setattr(os, "link", without_hard_links)
    path = tmp_path / "error.json"
    report("first").write_first(path, writer="rank-1")
    report("second").write_first(path, writer="rank-0")

    written = ErrorReport.read(path)
    assert written is not None
    assert written.message == "first"
    assert [file.name for file in tmp_path.iterdir()] == ["error.json"]
