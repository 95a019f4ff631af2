"""Runs killed at random instants: each continues to the model that the undisturbed run trains, bit for bit.

`--kills 50` kills as many runs; by default there are a few, since each takes two starts of the ranks.
"""

import random
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.distributed.runs import Run, final_state, metrics, prepare, processes_of, wait_until_gone
from trainer.run_dir import RunDir

OPTIONS: dict[str, Any] = {"epochs": 4, "batch": 8, "nbs": 16, "save_every": 2, "log_every": 1, "num_workers": 1}
OPTIONS |= {"ema": 0.9, "augment": ["random_crop", "horizontal_flip"]}
"""Three steps, the last one short, in each of four epochs; all that a run carries from step to step is in use."""


@dataclass(frozen=True)
class Undisturbed:
    run_dir: RunDir
    seconds: float


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, images: Path) -> Undisturbed:
    begun_s = time.monotonic()
    run_dir = Run(prepare(tmp_path_factory.mktemp("undisturbed") / "run", data=images, **OPTIONS)).succeed()
    return Undisturbed(run_dir, time.monotonic() - begun_s)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "kill" in metafunc.fixturenames:
        metafunc.parametrize("kill", range(metafunc.config.getoption("--kills")))


@pytest.mark.timeout(300)
def test_a_run_killed_at_a_random_instant_continues_to_the_undisturbed_model(
    kill: int, tmp_path: Path, images: Path, undisturbed: Undisturbed
) -> None:
    draws = random.Random(kill)
    run_dir = prepare(tmp_path / "run", data=images, **OPTIONS)
    run = Run(run_dir)
    try:
        run.process.wait(draws.uniform(0, undisturbed.seconds))
    except subprocess.TimeoutExpired:
        _kill_one(run, draws)
    run.wait()
    wait_until_gone(run_dir, timeout_s=10)
    Run(run_dir).succeed()
    assert final_state(run_dir) == final_state(undisturbed.run_dir)
    assert metrics(run_dir) == metrics(undisturbed.run_dir)


def _kill_one(run: Run, draws: random.Random) -> None:
    """Kill the launcher, a rank or a loader, as nothing can prevent."""
    victims = [psutil.Process(run.process.pid), *processes_of(run.run_dir)]
    try:
        draws.choice(victims).kill()
    except psutil.NoSuchProcess:  # the run has just ended
        return
