"""A rank that torchrun has started: `torchrun --nproc-per-node 2 -m trainer train.yaml`."""

import os
from pathlib import Path
from typing import NoReturn

from trainer.command import new_run_dir
from trainer.environment import RankEnvironment
from trainer.process_group import connect, shared
from trainer.rank import end_with
from trainer.reporting import ProgressFile
from trainer.run_dir import RUN_DIR_VARIABLE, RunDir
from trainer.train_file import TrainFile
from trainer.training import run


def run_as_rank(file: TrainFile, environment: RankEnvironment, *, output: Path | None) -> NoReturn:
    """Train as the one rank that the environment says this process is, and end the process.

    Rank 0 makes the run directory; the others learn of it through torchrun's store.
    """
    config = file.run_config_under_torchrun(environment)
    store = connect(environment, config)
    path = ""
    if environment.rank == 0:
        run_dir = RunDir(new_run_dir(output).resolve())
        run_dir.create(config)
        path = str(run_dir.path)
    run_dir = RunDir(Path(shared(store, "run_dir", path, rank=environment.rank)))
    os.environ[RUN_DIR_VARIABLE] = str(run_dir.path)

    def train() -> None:
        run_dir.ranks.mkdir(parents=True, exist_ok=True)  # on another host, rank 0 has made nothing
        progress = ProgressFile(run_dir, local_rank=environment.local_rank)
        progress.write("starting", 0)
        run(run_dir, config, environment=environment, store=store, progress=progress)

    end_with(run_dir, environment, train)
