"""The two loops that each line is measured with: the trainer, and the plain loop as a program of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

from trainer import parent_death
from trainer.bench.lines import Line, Measured
from trainer.bench.workload import Workload
from trainer.environment import machine_defaults
from trainer.errors import Cause, RunFailedError
from trainer.journal import EpochEnd, read_records
from trainer.launch import launch
from trainer.run_dir import RunDir
from trainer.train_file import TrainFile
from trainer.trials import complete

_PLAIN_LOOP = Path(__file__).with_name("plain_loop.py")
_TERMINATE_S = 10.0
_SHOWN_LINES = 20


def ours(workload: Workload, line: Line, *, device: str, images: Path, folder: Path) -> Measured:
    """Train a line by the trainer. Raises RunFailedError or RunInterruptedError."""
    where = {"device": "cpu", "nproc_per_node": line.devices}
    if device == "cuda":
        where = {"device": ",".join(map(str, range(line.devices)))}
    file = TrainFile.of(
        {
            "model": workload.model,
            "data": str(images),
            "epochs": workload.epochs,
            "batch": workload.batch,
            "lr": workload.lr,
            "image_size": 32,
            "augment": ["random_crop", "horizontal_flip"],
            "strategy": line.strategy,
            "amp": line.amp,
            "sync_bn": False,  # each rank normalises its own share, as in the plain loop
            "num_workers": workload.num_workers,
        }
        | where
    )
    run_dir = RunDir(folder / "run")
    config = file.run_config()
    run_dir.create(config)
    complete(run_dir, config, launch)
    ends = [record for record in read_records(run_dir.journal) if isinstance(record, EpochEnd)]
    return Measured(tuple(end.seconds for end in ends), ends[-1].values["val/accuracy"] or 0.0)


def plain(workload: Workload, line: Line, *, device: str, images: Path, folder: Path) -> Measured:
    """Train a line by the plain loop, with as many threads for each rank. Raises RunFailedError."""
    program = [str(_PLAIN_LOOP), "--root", str(images.parent), "--checkpoint", str(folder / "plain.pt")]
    program += ["--device", device, "--model", workload.model, "--epochs", str(workload.epochs)]
    program += ["--batch", str(workload.batch), "--lr", str(workload.lr), "--num-workers", str(workload.num_workers)]
    if line.amp is not None:
        program += ["--amp", line.amp]
    ranks = 1
    if line.strategy == "dp":
        program += ["--data-parallel", str(line.devices)]
    elif line.devices > 1:
        ranks = line.devices
        program = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks), *program]
    environment = os.environ | machine_defaults(os.environ, local_world_size=ranks, on_loopback=True)
    printed = _run([sys.executable, *program], environment, log=folder / "plain.log")
    epochs = [json.loads(row) for row in printed.splitlines() if row.startswith("{")]
    return Measured(tuple(epoch["seconds"] for epoch in epochs), epochs[-1]["accuracy"])


def _run(command: list[str], environment: dict[str, str], *, log: Path) -> str:
    """Return what a program prints; it ends with us, also by SIGKILL."""
    command = [sys.executable, parent_death.__file__, str(os.getpid()), *command]
    with log.open("w+") as errors:
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True)
        try:
            printed, _ = process.communicate()
        finally:
            _end(process)
        if process.returncode != 0:
            errors.seek(0)
            said = "".join(errors.readlines()[-_SHOWN_LINES:])
            raise RunFailedError(f"the plain loop failed:\n{said}", cause=Cause.EXCEPTION)
    return printed


def _end(process: "subprocess.Popen[str]") -> None:
    """End a program that we stop waiting for; torchrun needs a moment to end its ranks."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(_TERMINATE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
