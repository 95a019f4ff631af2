"""Ranks that torchrun has started: what befalls one before they train is told to all, and a restart goes on."""

import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from torch.distributed import PrefixStore, TCPStore  # type: ignore[attr-defined]  # exported where torch has distributed

from tests.distributed.runs import (
    RUN_S,
    TINY,
    records,
    start,
    write_train_file,
)
from trainer.environment import RankEnvironment
from trainer.errors import Cause
from trainer.journal import Started
from trainer.roll_call import call_roll
from trainer.run_dir import EXIT_FAILED, RunDir
from trainer.train_file import TrainFile


@pytest.mark.timeout(300)
def test_what_keeps_one_rank_from_training_is_raised_on_all_and_a_restart_continues_the_run(
    tmp_path: Path, images: Path
) -> None:
    (tmp_path / "file").touch()
    options = TINY | {"data": str(images), "epochs": 3, "batch": 8, "device": "cpu"}
    script = tmp_path / "script.py"
    script.write_text(
        "import json, os, threading\n"
        "from trainer import train\n"
        f"OPTIONS = {options!r}\n"
        "rank, attempt = os.environ['RANK'], os.environ['TORCHELASTIC_RESTART_COUNT']\n"
        "told = []\n"
        "def attempted(**more):\n"
        "    try:\n"
        "        train(**OPTIONS | more)\n"
        "    except Exception as error:\n"
        "        told.append(f'{type(error).__name__}: {error}')\n"
        "attempted(output='file/run')\n"
        "thread = threading.Thread(target=attempted, kwargs={'output': 'thread'})\n"
        "thread.start()\n"
        "thread.join()\n"
        "def die_once(record):\n"
        "    if attempt == '0' and record.kind == 'epoch':\n"
        "        os._exit(3)\n"
        "try:\n"
        "    result = train(**OPTIONS, output='run', callbacks=[die_once])\n"
        "    told.append([record.epoch for record in result.epochs])\n"
        "finally:\n"
        "    with open(f'told-{attempt}-{rank}.json', 'w') as file:\n"
        "        json.dump(told, file)\n"
    )

    torchrun = str(Path(sys.executable).with_name("torchrun"))
    trained = start(torchrun, "--nproc-per-node", "2", "--max-restarts", "1", str(script), folder=tmp_path)

    assert trained.returncode == 0, trained.stderr
    told = [json.loads((tmp_path / f"told-1-{rank}.json").read_text()) for rank in (0, 1)]
    assert told[0][0].startswith("NotADirectoryError: ")
    assert told[1][0] == f"ConfigError: node 0 takes no part: {told[0][0].removeprefix('NotADirectoryError: ')}"
    for one in told:
        assert one[1].startswith("ConfigError: train() under torchrun trains in the thread that calls it")
        assert one[2] == [1, 2, 3]
    assert not (tmp_path / "thread").exists()
    run_dir = RunDir(tmp_path / "run")
    started = [record for record in records(run_dir) if isinstance(record, Started)]
    assert [record.resumed_step for record in started] == [None, started[0].steps_per_epoch]
    assert run_dir.read_error() is None
    assert run_dir.read_config().master_port == 0


def test_a_rank_whose_peers_go_missing_ends_as_failed_and_says_so_in_the_run_directory(tmp_path: Path) -> None:
    fields = TINY | {"data": "digits", "device": "cpu", "batch": 8, "timeout_s": 5}
    write_train_file(tmp_path, **fields)
    # This test is torchrun, which serves the store, and rank 1, which is never heard of again after the roll call.
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False, timeout=timedelta(seconds=RUN_S))
    where = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(store.port)}
    where |= {"TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_RUN_ID": "none"}
    own = RankEnvironment.read(where | {"RANK": "1", "LOCAL_RANK": "0", "GROUP_RANK": "1"})
    with subprocess.Popen(
        [sys.executable, "-m", "trainer", "train.yaml", "--output", "run"],
        cwd=tmp_path,
        env=os.environ | where | {"RANK": "0", "LOCAL_RANK": "0", "GROUP_RANK": "0"},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        config = TrainFile.of(fields).run_config_under_torchrun(own)
        call_roll(PrefixStore("rankzero/none/0/0", store), own, config, timeout_s=RUN_S)
        _, said = process.communicate(timeout=RUN_S)
    assert process.returncode == EXIT_FAILED, said
    error = RunDir(tmp_path / "run").read_error()
    assert error is not None
    assert error.cause is Cause.COMMUNICATION
    assert "only 1 of 2 ranks have come within 5 s" in error.message
