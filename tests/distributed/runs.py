"""Real training runs as tests start them: tiny models on drawn images, in processes that die with the test."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch
import yaml
from PIL import Image

from tests.children import start_child
from tests.waiting import wait_until
from trainer.config import TrainConfig
from trainer.journal import EpochEnd, Metrics, Record, read_records
from trainer.run_dir import RUN_DIR_VARIABLE, RunConfig, RunDir

RUN_S = 110
"""Seconds that a tiny run may take on a busy machine before the test calls it stuck."""

TINY: dict[str, Any] = {"model": "squeezenet1_1", "dropout": 0, "image_size": 32, "lr": 0.01, "num_workers": 0}
"""A small model with neither BatchNorm nor dropout: runs on different numbers of ranks agree to rounding."""


def draw_images(root: Path, *, train: int, val: int, classes: int = 2, size: int = 16) -> Path:
    """Draw `train` and `val` images, dealt to the classes in turn, each class with a brightness of its own."""
    random = np.random.default_rng(0)
    for split, count in (("train", train), ("val", val)):
        for number in range(count):
            label = number % classes
            noise = random.integers(0, 100, (size, size, 3)) + label * (150 // classes)
            path = root / split / f"class{label}" / f"{number:04}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(noise.astype(np.uint8)).save(path)
    return root


def prepare(
    path: Path,
    *,
    data: Path | str,
    ranks: int = 2,
    resume: Path | None = None,
    max_steps: int | None = None,
    call: bool = False,
    hang_limit_s: float | None = None,
    **options: Any,
) -> RunDir:
    """Make a run directory for a tiny run."""
    run_dir = RunDir(path)
    train = TrainConfig.model_validate(TINY | {"data": str(data)} | options)
    config = RunConfig(
        train=train,
        devices=("cpu",) * ranks,
        resume=resume,
        max_steps=max_steps,
        call=call,
        hang_limit_s=hang_limit_s,
    )
    run_dir.create(config)
    return run_dir


def start(*command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of the trainer's to its end, as from a shell in `folder`."""
    environment = {name: value for name, value in os.environ.items() if name != RUN_DIR_VARIABLE}
    return subprocess.run(
        command,
        cwd=folder,
        env=environment | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=RUN_S,
        check=False,
    )


def write_train_file(folder: Path, **fields: object) -> Path:
    """Write a train.yaml of a tiny training."""
    path = folder / "train.yaml"
    path.write_text(yaml.safe_dump(TINY | fields))
    return path


class Run:
    """A running `python -m trainer RUN_DIR`."""

    def __init__(self, run_dir: RunDir, **environment: str) -> None:
        self.run_dir = run_dir
        self._log = run_dir.path.with_name(run_dir.path.name + ".launcher.log")
        self.process = start_child(
            [sys.executable, "-m", "trainer", str(run_dir.path)],
            log=self._log,
            folder=run_dir.path,
            environment=os.environ | {"OMP_NUM_THREADS": "1"} | environment,
        )

    def wait(self, timeout_s: float = RUN_S) -> int:
        """Return the exit status."""
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the run is still going on after {timeout_s} s\n{self.output()}") from None

    def kill(self) -> None:
        """End the launcher as nothing can prevent: the ranks have to notice by themselves."""
        self.process.kill()
        self.process.wait()

    def succeed(self) -> RunDir:
        """Wait for the end, which has to be success."""
        assert self.wait() == 0, self.output()
        return self.run_dir

    def output(self) -> str:
        """What the launcher and the ranks have printed."""
        logs = [self._log, *sorted(self.run_dir.ranks.glob("*.log"))]
        return "\n".join(f"--- {log.name}\n{log.read_text()}" for log in logs if log.is_file())

    def wait_for_step(self, step: int) -> None:
        """Return once rank 0 has taken `step` steps."""

        def reached() -> bool:
            assert self.process.poll() is None, f"the run ended before step {step}\n{self.output()}"
            progress = self.run_dir.read_progress(0)
            return progress is not None and progress.step >= step

        wait_until(reached, timeout_s=RUN_S, what=lambda: f"step {step}\n{self.output()}")

    def rank_process(self, rank: int) -> psutil.Process:
        """Return the process of a rank."""
        return next(process for process in processes_of(self.run_dir) if _rank_of(process) == rank)

    def wait_for_ranks(self, count: int) -> list[psutil.Process]:
        """Return the processes of the ranks once there are `count`."""

        def ranks() -> list[psutil.Process]:
            found = [process for process in processes_of(self.run_dir) if _rank_of(process) is not None]
            return found if len(found) == count else []

        return wait_until(ranks, timeout_s=RUN_S, what=f"{count} ranks")


def processes_of(run_dir: RunDir) -> list[psutil.Process]:
    """Every living process that carries the run directory in its environment: ranks, loaders, whatever they started."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(RUN_DIR_VARIABLE) == str(run_dir.path) and process.status() != "zombie":
                found.append(process)
        except psutil.Error:
            continue
    return found


def wait_until_gone(run_dir: RunDir, *, timeout_s: float) -> None:
    """Return once no process of the run is alive."""
    wait_until(
        lambda: not processes_of(run_dir),
        timeout_s=timeout_s,
        what=lambda: f"the end of {[(process.pid, process.cmdline()) for process in processes_of(run_dir)]}",
    )


def records(run_dir: RunDir) -> list[Record]:
    return list(read_records(run_dir.journal))


def metrics(*run_dirs: RunDir) -> dict[int, dict[str, float | None]]:
    """Every metric that does not depend on the clock, by step; later attempts come on top of earlier ones."""
    series: dict[int, dict[str, float | None]] = {}
    for record in (record for run_dir in run_dirs for record in records(run_dir)):
        if isinstance(record, Metrics):
            values = {name: value for name, value in record.values.items() if name != "train/images_per_s"}
            series.setdefault(record.step, {}).update(values)
    return series


def epochs(run_dir: RunDir) -> list[EpochEnd]:
    return [record for record in records(run_dir) if isinstance(record, EpochEnd)]


def last_weights(run_dir: RunDir, part: str = "model") -> dict[str, torch.Tensor]:
    """The weights in the newest checkpoint: the model's, or with ema those `unaveraged`."""
    saved = run_dir.last_checkpoint()
    assert saved is not None
    weights: dict[str, torch.Tensor] = torch.load(run_dir.path / saved.path, weights_only=True)[part]
    return weights


def best_checkpoint(run_dir: RunDir) -> Path:
    """The best checkpoint that the completion record of a run names."""
    completed = run_dir.completed()
    assert completed is not None
    assert completed.best_checkpoint is not None
    return run_dir.path / completed.best_checkpoint


def final_state(run_dir: RunDir) -> str:
    """A digest of all that the newest checkpoint would have a run go on from, bit for bit."""
    saved = run_dir.last_checkpoint()
    assert saved is not None
    content = torch.load(run_dir.path / saved.path, weights_only=True)
    digest = hashlib.sha256()
    for name in ("model", "unaveraged", "optimizer", "epoch", "step_in_epoch", "step", "values", "metric"):
        _add(digest, content[name])
    return digest.hexdigest()


def _add(digest: "hashlib._Hash", value: Any) -> None:
    match value:
        case torch.Tensor():
            digest.update(value.numpy(force=True).tobytes())
        case dict():
            for name, part in value.items():
                digest.update(str(name).encode())
                _add(digest, part)
        case list() | tuple():
            for part in value:
                _add(digest, part)
        case _:
            digest.update(repr(value).encode())


def largest_difference(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> float:
    """The largest absolute difference between two sets of weights."""
    assert one.keys() == other.keys()
    return max((one[name].double() - other[name].double()).abs().max().item() for name in one)


def _rank_of(process: psutil.Process) -> int | None:
    try:
        if "trainer.rank" not in process.cmdline():
            return None
        parent = process.parent()
        if parent is not None and "trainer.rank" in parent.cmdline():
            return None  # a loader process, forked from the rank
        return int(process.environ()["RANK"])
    except psutil.Error:
        return None
