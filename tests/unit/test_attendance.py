"""What a node says while it waits for the others."""

from pathlib import Path

import pytest

from trainer.attendance import Attendance
from trainer.config import TrainConfig
from trainer.reporting import ProgressFile
from trainer.run_dir import RunConfig, RunDir


def of_node(node_rank: int, run_dir: RunDir, *, every_s: float = 0) -> Attendance:
    train = TrainConfig(model="resnet18", data="digits", timeout_s=600)
    nodes = {"nnodes": 3, "node_rank": node_rank, "master_addr": "alpha", "master_port": 29400}
    config = RunConfig.model_validate({"train": train, "devices": ("cpu", "cpu")} | nodes)
    run_dir.create(config)
    return Attendance(run_dir, config, every_s=every_s)


def test_each_node_says_for_whom_it_waits_and_how_long(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for node_rank in (0, 1):
        of_node(node_rank, RunDir(tmp_path)).begin()
    assert capsys.readouterr().err.splitlines() == [
        "node 0 of 3: waits for 2 other nodes at port 29400, and gives up after 600 s (timeout_s)",
        "node 1 of 3: looks for node 0 at alpha port 29400, and gives up after 600 s (timeout_s)",
    ]


def test_node_0_says_how_many_ranks_have_come_for_as_long_as_some_are_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    attendance = of_node(0, RunDir(tmp_path))
    attendance.update()
    progress = ProgressFile(RunDir(tmp_path), local_rank=0)
    progress.write("starting", 0, present=2)
    of_node(0, RunDir(tmp_path), every_s=1000).update()
    assert capsys.readouterr().err == ""
    attendance.update()
    assert capsys.readouterr().err == "2 of 6 ranks are here; waits for the others\n"
    progress.write("training", 1)
    attendance.update()
    assert capsys.readouterr().err == ""
