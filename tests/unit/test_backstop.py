"""The backstop: how long a supervisor lets a run be quiet that its launcher should have ended."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from trainer.run_dir import Progress, RunDir
from worker import backstop
from worker.backstop import LOOK_S, SPARE_S, Backstop

LIMIT_S = 100.0


class Run:
    """A run directory with two ranks, and a clock that the test moves."""

    def __init__(self, folder: Path) -> None:
        self.run_dir = RunDir(folder)
        self.run_dir.ranks.mkdir()
        self.now = 0.0

    def tell(self, local_rank: int, *, phase: str, step: int) -> None:
        progress = Progress.model_validate({"phase": phase, "step": step, "time": datetime.now(UTC)})
        self.run_dir.progress(local_rank).write_text(progress.model_dump_json())


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    run = Run(tmp_path)
    monkeypatch.setattr(backstop, "clock", lambda: run.now)
    return run


@pytest.fixture
def watch(run: Run) -> Callable[[float], float | None]:
    """Let so many seconds pass, looking again and again; return what the last look said."""
    return watch_with(run, LIMIT_S)


def watch_with(run: Run, limit_s: float) -> Callable[[float], float | None]:
    guard = Backstop(run.run_dir, local_world_size=2, limit_s=limit_s)

    def pass_s(seconds: float) -> float | None:
        until, said = run.now + seconds, None
        while run.now < until:
            run.now += LOOK_S
            said = guard.hangs_for_s()
        return said

    return pass_s


def test_ranks_that_train_without_progress_are_ended_after_twice_the_limit_and_some(
    run: Run, watch: Callable[[float], float | None]
) -> None:
    for rank in (0, 1):
        run.tell(rank, phase="training", step=3)
    watch(LOOK_S)

    assert watch(2 * LIMIT_S + SPARE_S) is None
    assert watch(LOOK_S) == 2 * LIMIT_S + SPARE_S + LOOK_S


def test_one_rank_that_makes_progress_is_enough(run: Run, watch: Callable[[float], float | None]) -> None:
    for step in range(10):
        run.tell(0, phase="training", step=10**step)
        run.tell(1, phase="training", step=0)
        assert watch(2 * LIMIT_S) is None


@pytest.mark.parametrize("phase", ["starting", "compiling"])
def test_a_rank_that_starts_or_compiles_gets_ten_times_as_long(
    run: Run, watch: Callable[[float], float | None], phase: str
) -> None:
    run.tell(0, phase="training", step=3)
    run.tell(1, phase=phase, step=0)
    watch(LOOK_S)

    assert watch(20 * LIMIT_S + SPARE_S) is None
    assert watch(LOOK_S) is not None


def test_ranks_that_have_not_said_anything_yet_get_as_long_as_one_that_starts(
    watch: Callable[[float], float | None],
) -> None:
    assert watch(20 * LIMIT_S) is None
    assert watch(SPARE_S + 2 * LOOK_S) is not None


def test_however_small_the_limit_ranks_that_have_not_said_anything_are_left_to_the_launcher(run: Run) -> None:
    watch = watch_with(run, 1.0)
    assert watch(2 * 600.0) is None
    assert watch(SPARE_S + 2 * LOOK_S) is not None
