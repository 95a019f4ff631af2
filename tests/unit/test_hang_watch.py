"""The hang watch on a clock of the test's: which standstill is one, and of which ranks."""

from pathlib import Path
from typing import Any

import pytest

from trainer.config import TrainConfig
from trainer.hang_watch import HangWatch, Standstill
from trainer.reporting import Phase, ProgressFile
from trainer.run_dir import RunConfig, RunDir

LIMIT_S = 60.0


class Watched:
    """Two ranks, a watch on them and its clock."""

    def __init__(self, folder: Path, **fields: Any) -> None:
        train = fields.pop("train", TrainConfig(model="resnet18", data="digits"))
        config = RunConfig(train=train, devices=("cpu", "cpu"), **({"hang_limit_s": LIMIT_S} | fields))
        self.run_dir = RunDir(folder)
        self.run_dir.create(config)
        self.now_s = 0.0
        self.ranks = [ProgressFile(self.run_dir, local_rank=rank) for rank in (0, 1)]
        self.watch = HangWatch(self.run_dir, config, clock=lambda: self.now_s)

    def write(self, *phases: Phase, step: int = 5) -> None:
        """Have rank 0, or both, make progress."""
        for rank, phase in zip(self.ranks, phases, strict=False):
            rank.write(phase, step)

    def after(self, seconds: float, *, ended: tuple[int, ...] = ()) -> list[Standstill]:
        """Let time pass, with a look every second; return what is seen then, or as soon as anything is."""
        for _ in range(int(seconds)):
            self.now_s += 1
            if still := self.watch.look(ended):
                return still
        return []


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


def ranks(still: list[Standstill]) -> list[int]:
    return [each.local_rank for each in still]


def test_both_ranks_are_suspect_once_both_have_stood_still_for_the_limit(watched: Watched) -> None:
    watched.write("training", "training")
    assert watched.after(LIMIT_S) == []
    still = watched.after(2)
    assert ranks(still) == [0, 1]
    assert (still[0].phase, still[0].step, still[0].limit_s) == ("training", 5, LIMIT_S)
    assert LIMIT_S < still[0].seconds <= LIMIT_S + 2


@pytest.mark.parametrize("phase", ["starting", "compiling", "waiting"])
def test_a_start_a_compilation_and_a_wait_for_the_others_may_take_ten_times_as_long(
    phase: Phase, watched: Watched
) -> None:
    watched.write(phase, phase)
    assert watched.after(10 * LIMIT_S) == []
    assert ranks(watched.after(2)) == [0, 1]


@pytest.mark.parametrize(("limit_s", "first_word_s"), [(1.0, 600), (120.0, 1200)])
def test_a_rank_that_has_never_said_a_word_is_one_that_starts_and_has_ten_minutes_at_least(
    limit_s: float, first_word_s: float, tmp_path: Path
) -> None:
    watched = Watched(tmp_path, hang_limit_s=limit_s)
    assert watched.after(first_word_s) == []
    assert watched.after(2)[0].phase == "starting"


def test_a_rank_that_has_said_that_it_starts_has_ten_times_a_small_limit(tmp_path: Path) -> None:
    watched = Watched(tmp_path, hang_limit_s=1.0)
    watched.write("starting", "starting", step=0)
    assert watched.after(10) == []
    assert ranks(watched.after(2)) == [0, 1]


def test_slow_progress_is_progress(watched: Watched) -> None:
    for step in range(5):
        watched.write("training", "training", step=step)
        assert watched.after(LIMIT_S - 1) == []


def test_a_rank_in_training_may_wait_for_one_that_is_behind_and_at_work(watched: Watched) -> None:
    """Such as rank 0 in a save, in which each part that is written is progress."""
    watched.write("saving", "training")
    for step in range(5):
        assert watched.after(LIMIT_S - 1) == []
        watched.ranks[0].write("saving" if step % 2 else "training", 5)
    assert ranks(watched.after(LIMIT_S + 2)) == [0, 1]


def test_a_rank_that_is_stuck_in_evaluation_is_no_better_for_one_that_goes_on(watched: Watched) -> None:
    watched.write("evaluating", "evaluating")
    assert watched.after(LIMIT_S - 10) == []
    watched.ranks[0].write("training", 5)  # anything else than before
    assert ranks(watched.after(12)) == [1]


def test_a_rank_that_waited_for_a_save_is_suspect_when_the_save_is_long_over(watched: Watched) -> None:
    """It was to come along to the next step, whatever its file says."""
    watched.write("training", "waiting")
    assert ranks(watched.after(LIMIT_S + 2)) == [0, 1]


def test_a_rank_that_has_ended_is_not_waited_for(watched: Watched) -> None:
    watched.write("finished", "training")
    assert ranks(watched.after(LIMIT_S + 2)) == [1]
    watched.write("training", "training", step=6)
    assert ranks(watched.after(LIMIT_S + 2, ended=(0,))) == [1]


def test_time_in_which_the_launcher_itself_was_stopped_does_not_count(watched: Watched) -> None:
    watched.write("training", "training")
    assert watched.after(1) == []
    watched.now_s += 100 * LIMIT_S
    assert watched.watch.look() == []


def test_without_a_limit_nothing_is_a_hang(tmp_path: Path) -> None:
    watched = Watched(tmp_path, hang_limit_s=None)
    watched.write("training", "training")
    assert watched.after(100 * LIMIT_S) == []


def test_a_script_is_judged_by_the_reports_of_its_rank_0(tmp_path: Path) -> None:
    script = TrainConfig.model_validate({"recipe": "script", "options": {"script": "/program.py"}})
    watched = Watched(tmp_path, train=script)
    watched.write("starting", "starting", step=0)
    for step in range(20):
        watched.ranks[0].write("training", step)
        assert watched.after(LIMIT_S - 1) == []
    still = watched.after(3)
    assert ranks(still) == [0, 1]
    assert {(each.phase, each.step, round(each.seconds / 10)) for each in still} == {("training", 19, 6)}


def test_a_node_whose_ranks_may_wait_for_another_node_s_leaves_it_to_that_once(watched: Watched) -> None:
    watched.write("training", "training")
    assert watched.after(LIMIT_S + 2)
    assert watched.watch.leave_to_others()
    assert watched.after(14) == []
    assert watched.after(2)
    assert not watched.watch.leave_to_others()


def test_a_phase_is_kept_for_the_steps_that_a_device_has_yet_to_come_to(watched: Watched) -> None:
    def phase() -> str:
        reached = watched.run_dir.read_progress(0)
        assert reached is not None
        return reached.phase

    progress = watched.ranks[0]
    progress.keep("compiling", 0, through=2)
    for step, expected in ((1, "compiling"), (2, "compiling"), (3, "training")):
        progress.write("training", step)
        assert phase() == expected


def test_a_sign_of_life_says_nothing_but_that(watched: Watched) -> None:
    progress = watched.ranks[0]
    progress.alive()
    assert watched.run_dir.read_progress(0) is None
    progress.write("evaluating", 7)
    before = watched.run_dir.read_progress(0)
    progress._written_at = 0.0  # long ago
    progress.alive()
    after = watched.run_dir.read_progress(0)
    assert before is not None
    assert after is not None
    assert after.time > before.time
    assert (after.phase, after.step) == ("evaluating", 7)
