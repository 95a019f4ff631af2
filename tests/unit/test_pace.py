"""What is foretold of a run by its pace."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobs.pace import Try, left_s, run_s, sooner, trained_s

T0 = datetime(2026, 3, 1, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def trial(*, began: float, trained: float, ended: float | None, resumed_step: int | None = None) -> Try:
    return Try(at(began), at(trained), None if ended is None else at(ended), resumed_step)


def test_a_running_attempt_ends_when_its_steps_do_at_the_pace_so_far() -> None:
    running = trial(began=0, trained=10, ended=None)

    assert left_s(running, {"step": 30, "total_steps": 90}, at(40)) == 60


def test_steps_that_an_earlier_attempt_took_are_no_part_of_the_pace() -> None:
    running = trial(began=0, trained=0, ended=None, resumed_step=50)

    assert left_s(running, {"step": 60, "total_steps": 90}, at(20)) == 60


def test_another_attempt_takes_its_start_and_the_steps_that_are_left_from_its_checkpoint() -> None:
    tries = [trial(began=0, trained=5, ended=105)]

    assert run_s(tries, {"step": 50, "total_steps": 100}, from_step=40) == 5 + 60 * 2


def test_the_newest_attempt_says_how_fast_a_job_goes() -> None:
    slow = trial(began=0, trained=0, ended=1000)
    fast = trial(began=2000, trained=2000, ended=2010, resumed_step=10)

    assert run_s([fast, slow], {"step": 20, "total_steps": 30}, from_step=20) == 10


@pytest.mark.parametrize(
    "progress",
    [
        None,
        {},
        {"step": 0, "total_steps": 90},
        {"step": 30},
        {"total_steps": 90},
        {"step": 30, "total_steps": None},
        {"step": "30", "total_steps": 90},
        {"step": True, "total_steps": 90},
        {"step": -1, "total_steps": 90},
    ],
    ids=repr,
)
def test_nothing_is_foretold_from_progress_that_says_nothing(progress: dict[str, Any] | None) -> None:
    assert left_s(trial(began=0, trained=0, ended=None), progress, at(40)) is None
    assert run_s([trial(began=0, trained=0, ended=40)], progress, from_step=0) is None


def test_nothing_is_foretold_of_a_run_that_has_not_begun_to_train() -> None:
    starting = Try(T0, None, None, None)

    assert left_s(starting, {"step": 30, "total_steps": 90}, at(40)) is None
    assert run_s([], {"step": 30, "total_steps": 90}, from_step=0) is None


def test_a_run_beyond_its_last_step_ends_now_and_not_in_the_past() -> None:
    assert left_s(trial(began=0, trained=0, ended=None), {"step": 95, "total_steps": 90}, at(40)) == 0


def test_only_training_counts_towards_a_time_limit() -> None:
    ended = trial(began=0, trained=100, ended=160)
    running = trial(began=500, trained=520, ended=None)

    assert trained_s([ended, running, Try(T0, None, at(9), None)], at(550)) == 60 + 30


def test_of_two_times_the_sooner_counts_and_an_unknown_one_does_not() -> None:
    assert (sooner(3, 2), sooner(None, 2), sooner(3, None), sooner(None, None)) == (2, 2, 3, None)
