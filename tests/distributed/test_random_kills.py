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

from tests.distributed.runs import Run, final_state, metrics, prepare, processes_of, records, wait_until_gone
from trainer.journal import CheckpointSaved, Started
from trainer.run_dir import RunDir

OPTIONS: dict[str, Any] = {"epochs": 30, "batch": 8, "nbs": 16, "save_every": 2, "log_every": 1, "num_workers": 1}
OPTIONS |= {"ema": 0.9, "augment": ["random_crop", "horizontal_flip"]}
"""Three steps, the last one short, in each epoch; all that a run carries from step to step is in use."""
STEPS = 90
STARTS = 5
"""Of so many kills, one comes while the ranks start, which takes longer than their training."""


@dataclass(frozen=True)
class Undisturbed:
    run_dir: RunDir
    start_s: float
    step_s: float


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, images: Path) -> Undisturbed:
    begun_s = time.monotonic()
    run = Run(prepare(tmp_path_factory.mktemp("undisturbed") / "run", data=images, **OPTIONS))
    run.wait_for_step(1)
    start_s = time.monotonic() - begun_s
    run.succeed()
    return Undisturbed(run.run_dir, start_s, (time.monotonic() - begun_s - start_s) / STEPS)


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
    if kill % STARTS == 0:
        _go_on_for(run, draws.uniform(0, undisturbed.start_s))
    else:
        run.wait_for_step(draws.randint(3, STEPS // 2))
        _go_on_for(run, draws.uniform(0, 2 * undisturbed.step_s))
    victim = draws.choice([psutil.Process(run.process.pid), *processes_of(run_dir)])
    victim.kill()
    run.wait()
    wait_until_gone(run_dir, timeout_s=10)
    assert run_dir.completed() is None, "the kill came too late"

    Run(run_dir).succeed()
    resumed = [record.resumed_step for record in records(run_dir) if isinstance(record, Started)]
    assert kill % STARTS == 0 or (resumed[0] is None and (resumed[1] or 0) >= 2)
    assert [record.seq for record in records(run_dir)] == list(range(len(records(run_dir))))
    announced = {record.path for record in records(run_dir) if isinstance(record, CheckpointSaved)}
    assert {f"checkpoints/{path.name}" for path in run_dir.checkpoints.iterdir()} <= announced
    assert final_state(run_dir) == final_state(undisturbed.run_dir)
    assert metrics(run_dir) == metrics(undisturbed.run_dir)
    assert Run(run_dir).wait() == 0, "a complete run is left as it is"


def _go_on_for(run: Run, seconds: float) -> None:
    """Let an instant of the run pass."""
    with pytest.raises(subprocess.TimeoutExpired):
        run.process.wait(seconds)
