"""The time limit of a job: counted from the first record of each of its attempts."""

from pathlib import Path

import pytest

from tests.clock import Clock
from trainer.run_dir import RunDir
from worker import time_limit
from worker.time_limit import TimeLimit


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time_limit, "clock", clock)
    return clock


def test_a_run_is_over_time_once_it_has_trained_for_what_earlier_attempts_left(clock: Clock, tmp_path: Path) -> None:
    limit = TimeLimit(100, trained_s=60, run_dir=RunDir(tmp_path))
    RunDir(tmp_path).journal.touch()
    assert not limit.is_over

    clock.at += 39.9
    assert not limit.is_over
    clock.at += 0.2
    assert limit.is_over


def test_the_start_of_a_run_does_not_count(clock: Clock, tmp_path: Path) -> None:
    limit = TimeLimit(100, trained_s=0, run_dir=RunDir(tmp_path))

    clock.at += 5000
    assert not limit.is_over
    RunDir(tmp_path).journal.touch()
    assert not limit.is_over
    clock.at += 100
    assert limit.is_over


def test_a_job_that_has_nothing_left_is_over_time_before_it_starts(tmp_path: Path) -> None:
    assert TimeLimit(100, trained_s=100, run_dir=RunDir(tmp_path)).is_over
