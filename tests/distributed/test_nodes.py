"""Runs on several nodes: a launcher for each, here all on this machine, that meet at a port that each is told."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.distributed.runs import (
    RUN_S,
    Run,
    largest_difference,
    last_weights,
    prepare,
    processes_of,
    records,
    start,
    wait_until_gone,
    write_train_file,
)
from tests.ports import PortClaim
from trainer.environment import RankEnvironment
from trainer.error_report import ErrorReport
from trainer.errors import Cause, CheckpointError
from trainer.journal import Started
from trainer.resuming import Resume
from trainer.run_dir import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE, RunDir

LONG: dict[str, Any] = {"epochs": 50, "batch": 8}


@pytest.fixture
def port() -> Iterator[int]:
    claim = PortClaim()
    yield claim.port
    claim.release()


def prepare_node(path: Path, node_rank: int, port: int, *, data: Path, ranks: int = 2, **options: Any) -> RunDir:
    """Make the run directory of one of two nodes."""
    run_dir = prepare(path / f"node-{node_rank}", data=data, ranks=ranks, **options)
    nodes = {"nnodes": 2, "node_rank": node_rank, "master_port": port}
    run_dir.create(run_dir.read_config().model_copy(update=nodes))
    return run_dir


def error_of(run: Run, *, status: int = EXIT_FAILED) -> ErrorReport:
    """Wait for the end, which has to be a failure, and return what error.json says."""
    assert run.wait() == status, run.output()
    assert not processes_of(run.run_dir)
    error = run.run_dir.read_error()
    assert error is not None
    return error


@pytest.mark.timeout(300)
def test_two_nodes_stopped_at_one_and_continued_train_what_one_rank_does(
    tmp_path: Path, images: Path, port: int
) -> None:
    options: dict[str, Any] = {"epochs": 4, "batch": 4, "log_every": 1}
    run_dirs = [prepare_node(tmp_path, node_rank, port, data=images, **options) for node_rank in (0, 1)]
    with _squatted(29500):  # torch's own default port
        first, second = map(Run, run_dirs)
        first.wait_for_step(4)
        second.process.send_signal(signal.SIGINT)
        stopped = error_of(first, status=EXIT_INTERRUPTED)
        assert error_of(second, status=EXIT_INTERRUPTED).message.endswith("the checkpoints are node 0's")
        saved = run_dirs[0].last_checkpoint()
        assert saved is not None
        assert saved.path in stopped.message

        first, second = map(Run, run_dirs)
        assert (first.wait(), second.wait()) == (0, 0), first.output() + second.output()
    started = [record for record in records(run_dirs[0]) if isinstance(record, Started)]
    assert [each.world_size for each in started] == [4, 4]
    assert started[1].resumed_step == saved.step
    assert not run_dirs[1].journal.exists()
    assert not list(run_dirs[1].checkpoints.iterdir())
    assert [run_dir.read_error() for run_dir in run_dirs] == [None, None]

    alone = Run(prepare(tmp_path / "alone", data=images, ranks=1, **options)).succeed()
    assert largest_difference(last_weights(alone), last_weights(run_dirs[0])) <= 1e-5


def test_a_node_that_is_killed_ends_the_other_which_says_that_it_lost_its_peers(
    tmp_path: Path, images: Path, port: int
) -> None:
    first, second = (Run(prepare_node(tmp_path, node_rank, port, data=images, ranks=1, **LONG)) for node_rank in (0, 1))
    first.wait_for_step(2)
    second.kill()
    error = error_of(first)
    assert (error.cause, error.rank) == (Cause.COMMUNICATION, None)
    assert "node 0 lost its peers" in error.message
    wait_until_gone(second.run_dir, timeout_s=10)


def test_a_node_with_another_train_yaml_is_refused_by_both(tmp_path: Path, images: Path, port: int) -> None:
    first = Run(prepare_node(tmp_path, 0, port, data=images, ranks=1, **LONG))
    second = Run(prepare_node(tmp_path, 1, port, data=images, ranks=1, **(LONG | {"epochs": 51})))
    for run in (first, second):
        error = error_of(run, status=EXIT_USAGE)
        assert error.cause is Cause.CONFIG
        assert "epochs is 51 here, and 50 on node 0" in error.message
    assert records(first.run_dir) == []


def test_the_command_takes_torchruns_words_and_a_port_that_another_program_has_is_refused(
    tmp_path: Path, images: Path, port: int
) -> None:
    write_train_file(tmp_path, data=str(images), device="cpu", nproc_per_node=2)
    words = ["--nnodes", "2", "--node-rank", "0", "--master-addr", "localhost", "--master-port", str(port)]
    with socket.create_server(("127.0.0.1", port)):
        refused = start(sys.executable, "-m", "trainer", "train.yaml", *words, "--output", "run", folder=tmp_path)
    assert refused.returncode == EXIT_USAGE
    assert f"master_port: port {port} " in refused.stderr
    config = RunDir(tmp_path / "run").read_config()
    assert (config.nnodes, config.node_rank, config.world_size) == (2, 0, 4)
    assert (config.master_addr, config.master_port) == ("localhost", port)
    assert not list((tmp_path / "run" / "ranks").iterdir())


@pytest.mark.timeout(300)
def test_torchrun_starts_the_ranks_of_two_nodes(tmp_path: Path, images: Path, port: int) -> None:
    write_train_file(tmp_path, data=str(images), epochs=1, batch=8, device="cpu")
    torchrun = str(Path(sys.executable).with_name("torchrun"))
    words = ["--nnodes", "2", "--nproc-per-node", "1", "--master-addr", "127.0.0.1", "--master-port", str(port)]
    nodes = [
        [torchrun, *words, "--node-rank", node_rank, "-m", "trainer", "train.yaml", "--output", f"node-{node_rank}"]
        for node_rank in ("0", "1")
    ]
    _run_together(nodes, folder=tmp_path)
    run_dir = RunDir(tmp_path / "node-0")
    started = records(run_dir)[0]
    assert isinstance(started, Started)
    assert started.world_size == 2
    assert run_dir.completed() is not None
    assert not (tmp_path / "node-1").exists()  # rank 0 alone makes the run directory, and tells the others


def test_a_node_without_the_checkpoint_to_continue_from_says_where_checkpoints_have_to_lie(tmp_path: Path) -> None:
    rank = RankEnvironment(rank=2, local_rank=0, world_size=4, local_world_size=2, node_rank=1)
    with pytest.raises(CheckpointError, match="file system that all of them share") as refused:
        Resume.read(tmp_path / "step-00000004.pt", rank)
    assert str(tmp_path / "step-00000004.pt") in str(refused.value)


def _run_together(commands: list[list[str]], *, folder: Path) -> None:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with (
        subprocess.Popen(commands[0], cwd=folder, env=environment, stderr=subprocess.PIPE, text=True) as first,
        subprocess.Popen(commands[1], cwd=folder, env=environment, stderr=subprocess.PIPE, text=True) as second,
    ):
        for process in (first, second):
            _, said = process.communicate(timeout=RUN_S)
            assert process.returncode == 0, said


def _squatted(port: int) -> "closing[socket.socket]":
    """Hold a port, unless another program does already."""
    try:
        return closing(socket.create_server(("127.0.0.1", port)))
    except OSError:
        return closing(socket.socket())
