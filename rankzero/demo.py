"""The demonstration: one real job on two ranks through the whole embedded service, and a check of what came back."""

import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from rankzero.cli.console import Console
from rankzero.cli.following import follow
from rankzero.cli.output import device_names
from rankzero.client import Client
from rankzero.embedded import EmbeddedService
from rankzero.errors import DemoError
from rankzero.models import Attempt, Checkpoint, Job, Metric
from trainer.parent_death import PARENT_PID_VARIABLE

SPEC: Mapping[str, Any] = {
    "name": "demo",
    "device": "0,1",
    "train": {
        "recipe": "classification",
        "model": "resnet18",
        "data": "digits",
        "epochs": 4,
        "batch": 64,
        "lr": 0.02,
        "image_size": 32,
        "num_workers": 0,
        "log_every": 2,
        "seed": 0,
    },
}
MIN_ACCURACY = 0.95
EVALUATION_TIMEOUT_S = 300
FOLDER_PREFIX = "rankzero-demo-"
EPOCH_METRICS = ("val/loss", "val/accuracy")


@dataclass(frozen=True)
class Epoch:
    """One epoch as the database has it."""

    epoch: int
    step: int
    loss: float | None
    """On the validation set, as is `accuracy`."""
    accuracy: float | None


@dataclass(frozen=True)
class DemoResult:
    """What the demonstration has shown."""

    job_id: int
    state: str
    attempts: int
    device: str
    world_size: int
    accuracy: float
    reloaded_accuracy: float
    """Of the checkpoint, loaded in a process of its own."""
    epochs: tuple[Epoch, ...]
    checkpoint: str
    seconds: float
    """From the command's start to this result."""

    def document(self) -> dict[str, Any]:
        """Return it as JSON; `epochs` is their number."""
        return asdict(self) | {"epochs": len(self.epochs)}


def run_demo(service: EmbeddedService, console: Console, *, started: float) -> DemoResult:
    """Submit the job, follow it, read everything back and check it; `started` is a time of `time.monotonic`.

    Raises DemoError where anything is not as it must be.
    """
    with Client(service.url) as client:
        job = client.submit(SPEC)
        console.print(f"job {job.id} is accepted: {job.device}, {job.world_size} ranks", highlight=False)
        if dashboard := service.find_dashboard():
            console.print(f"look at it as it trains: {dashboard}jobs/{job.id}", highlight=False, soft_wrap=True)
        job = follow(client.watch(job.id), console)
        if job.state != "succeeded":
            why = f"{job.failure.cause}: {job.failure.message}" if job.failure else "no reason is known"
            raise DemoError(f"job {job.id} {job.state} ({why}); the logs are in {service.logs}")
        attempts = client.attempts(job.id)
        checkpoint = _best(list(client.checkpoints(job.id)))
        epochs = _epochs(list(client.metrics(job.id, names=EPOCH_METRICS)))
    console.print("the checkpoint is loaded and evaluated in a process of its own", highlight=False)
    return _checked(job, attempts, checkpoint, epochs, started=started)


def print_result(console: Console, result: DemoResult) -> None:
    """Print the result for people."""
    table = Table(box=None, pad_edge=False)
    for heading in ("EPOCH", "STEP", "LOSS", "ACCURACY"):
        table.add_column(heading, justify="right")
    for row in result.epochs:
        table.add_row(str(row.epoch), str(row.step), _shown(row.loss), _shown(row.accuracy))
    console.print(table)
    lines = {
        "job": f"{result.job_id} {result.state}",
        "attempts": str(result.attempts),
        "devices": f"{result.device}, {result.world_size} ranks",
        "accuracy": f"{result.accuracy:.4f} on the validation set",
        "reloaded": f"{result.reloaded_accuracy:.4f} by the checkpoint, loaded in a process of its own",
        "checkpoint": result.checkpoint,
        "seconds": f"{result.seconds:.1f}",
    }
    for name, text in lines.items():
        console.print(f"{name:<10}  {text}", highlight=False, markup=False, soft_wrap=True)


def demo_folder() -> Path:
    """Return a new temporary folder, and remove those of earlier demonstrations that are over."""
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*"):
        if _is_abandoned(folder):
            shutil.rmtree(folder, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX))


def _checked(
    job: Job, attempts: Sequence[Attempt], checkpoint: Checkpoint, epochs: tuple[Epoch, ...], *, started: float
) -> DemoResult:
    accuracy = checkpoint.values.get("val/accuracy")
    wanted = job.spec["train"]["epochs"]
    placed = [device for placement in attempts[-1].placements for device in placement.devices]
    if accuracy is None or accuracy < MIN_ACCURACY:
        raise DemoError(f"job {job.id} ends with an accuracy of {accuracy}, below {MIN_ACCURACY}")
    if len(epochs) != wanted:
        raise DemoError(f"the database has {len(epochs)} of {wanted} epochs of job {job.id}")
    reloaded = evaluate(checkpoint.path)
    if reloaded != accuracy:
        raise DemoError(f"{checkpoint.path} has an accuracy of {reloaded}, and {accuracy} was measured in training")
    return DemoResult(
        job_id=job.id,
        state=job.state,
        attempts=len(attempts),
        device=device_names(placed),
        world_size=attempts[-1].world_size,
        accuracy=accuracy,
        reloaded_accuracy=reloaded,
        epochs=epochs,
        checkpoint=checkpoint.path,
        seconds=round(time.monotonic() - started, 1),
    )


def evaluate(checkpoint: str) -> float:
    """Return the accuracy of a checkpoint on its validation set, by a process of its own. Raises DemoError."""
    # Elsewhere than here, whose modules Python would find first.
    where = Path(checkpoint).parent
    command = [sys.executable, "-m", "trainer", "evaluate", checkpoint]
    try:
        done = subprocess.run(
            command,
            cwd=where,
            env=os.environ | {PARENT_PID_VARIABLE: str(os.getpid())},  # it ends with this process, however that ends
            capture_output=True,
            text=True,
            check=True,
            timeout=EVALUATION_TIMEOUT_S,
        )
        return float(json.loads(done.stdout)["val/accuracy"])
    except subprocess.CalledProcessError as error:
        raise DemoError(f"{checkpoint} cannot be evaluated: {error.stderr.strip()[-1000:]}") from error
    except (OSError, subprocess.TimeoutExpired, ValueError, KeyError, TypeError) as error:
        raise DemoError(f"{checkpoint} cannot be evaluated: {error}") from error


def _best(checkpoints: Sequence[Checkpoint]) -> Checkpoint:
    best = [checkpoint for checkpoint in checkpoints if checkpoint.best]
    if not best:
        raise DemoError("the database has no best checkpoint of the job")
    return best[-1]


def _epochs(metrics: Sequence[Metric]) -> tuple[Epoch, ...]:
    by_epoch: dict[int, dict[str, Metric]] = {}
    for metric in metrics:
        by_epoch.setdefault(metric.epoch, {})[metric.name] = metric
    return tuple(
        Epoch(
            epoch=number,
            step=max(metric.step for metric in found.values()),
            loss=found["val/loss"].value if "val/loss" in found else None,
            accuracy=found["val/accuracy"].value if "val/accuracy" in found else None,
        )
        for number, found in sorted(by_epoch.items())
    )


def _is_abandoned(folder: Path) -> bool:
    """Whether no service holds the folder's lock, and it is ours to remove."""
    try:
        if folder.stat().st_uid != os.getuid() or folder.is_symlink():
            return False
        with (folder / "lock").open("r") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # held, or not there yet: another demonstration begins
        return False
    return True


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
