"""The error file of a run: the first rank that writes it has the word."""

import errno
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

import pytest

from trainer.error_report import FIRST, MOST, ErrorReport, error_of, traceback_of
from trainer.errors import Cause, ConfigError


def report(message: str) -> ErrorReport:
    return ErrorReport(cause=Cause.EXCEPTION, message=message, time=datetime.now(UTC))


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        (Cause.EXCEPTION, "rank 1: boom"),
        (Cause.NON_FINITE_LOSS, "rank 1: boom"),
        (Cause.CONFIG, "boom"),
        (Cause.DATA, "boom"),
    ],
)
def test_the_rank_is_said_where_it_is_no_chance_which_one_it_is(cause: Cause, said: str, tmp_path: Path) -> None:
    error = report("boom").model_copy(update={"cause": cause, "rank": 1})
    assert error.said == said
    assert str(error_of(error, tmp_path)) == f"{said} (run directory {tmp_path})"


def test_a_message_that_names_the_rank_itself_does_so_once() -> None:
    error = report("rank 1 was ended by SIGKILL").model_copy(update={"rank": 1})
    assert error.said == "rank 1 was ended by SIGKILL"


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


class Mute(Exception):
    def __str__(self) -> str:
        raise LookupError("no words")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (AssertionError(), "AssertionError"),
        (ValueError("\nfirst\u2028second"), "ValueError: first"),
        (ValueError("bad \udcff"), r"ValueError: bad \udcff"),
        (Mute(), "Mute: <no text: LookupError in its __str__>"),
        (ConfigError(Mute()), "<no text: LookupError in its __str__>"),
    ],
    ids=["no text", "several lines", "a lone surrogate", "no string", "one of ours"],
)
def test_every_exception_has_a_message_of_one_line_that_can_be_written(
    error: BaseException, message: str, tmp_path: Path
) -> None:
    report = ErrorReport.of(error, cause=Cause.EXCEPTION, rank=0, traceback=traceback_of(error))
    report.write(tmp_path / "error.json")
    assert report.message == message
    assert ErrorReport.read(tmp_path / "error.json") == report


def test_of_a_very_long_traceback_the_beginning_and_the_end_are_kept_once(tmp_path: Path) -> None:
    text = "Traceback\n" + "x" * 3_000_000 + "\nValueError: at the end"
    report = ErrorReport.of(ValueError(), cause=Cause.EXCEPTION, rank=0, traceback=text)
    assert report.traceback is not None
    assert len(report.traceback) == MOST
    assert (report.traceback[:FIRST], report.traceback[-23:]) == (text[:FIRST], text[-23:])
    assert f"of {len(text)} characters" in report.traceback
    report.write(tmp_path / "error.json")
    assert ErrorReport.read(tmp_path / "error.json") == report
