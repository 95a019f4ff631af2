"""`python -m benchmarks`: what is told of what is under way, and its end before that is done."""

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks import journal
from benchmarks.report import Line
from trainer.run_dir import EXIT_INTERRUPTED


def test_each_turn_is_told_with_its_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    def step_ms(folder: Path, *, with_journal: bool) -> float:  # noqa: ARG001  (stands in for another)
        return 12 if with_journal else 10

    monkeypatch.setattr(journal, "_step_ms", step_ms)
    said: list[str] = []
    (line,) = journal.measure(said.append)
    assert line.ratio == 1.2
    assert said[1:] == [
        f"journal: turn {turn} of 5: a step takes 12.0 ms with the journal, 10.0 ms without" for turn in range(1, 6)
    ]


def test_an_interrupted_benchmark_ends_with_a_line_and_the_status_of_an_interrupted_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def measure(say: Callable[[str], None]) -> list[Line]:
        say("journal: turn 1 of 5")
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("nobody heard the signal")

    monkeypatch.setattr(journal, "measure", measure)
    assert command.main(["journal"]) == EXIT_INTERRUPTED
    assert capsys.readouterr() == ("", "journal: turn 1 of 5\ninterrupted: stopped by SIGINT\n")


def test_the_help_lists_each_with_what_it_usually_takes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["--help"])
    listed = {
        words[0]: words[-1]
        for words in map(str.split, capsys.readouterr().out.splitlines()[-len(command.BENCHMARKS) :])
    }
    assert set(listed) == set(command.BENCHMARKS)
    assert set(listed.values()) <= {"minute", "minutes"}
