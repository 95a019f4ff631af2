"""The hang report, of processes that stand still: what is said of a program's rank, and what it had printed."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from tests.waiting import wait_until
from trainer.config import TrainConfig
from trainer.hang_report import report_hang
from trainer.hang_watch import Standstill
from trainer.outcome import failed
from trainer.run_dir import RunConfig, RunDir

SCRIPT = TrainConfig.model_validate({"recipe": "script", "options": {"script": "/program.py"}})
PROGRAM = "import sys, time; from trainer.stack_dump import answer_signals; answer_signals(); {}; time.sleep(60)"


class Ranks:
    """Two ranks of a script: rank 0 does not answer, and rank 1 is stopped once it has printed what it is to."""

    def __init__(self, folder: Path) -> None:
        self.config = RunConfig(train=SCRIPT, devices=("cpu", "cpu"), hang_limit_s=20)
        self.run_dir = RunDir(folder)
        self.run_dir.create(self.config)
        self.pids: dict[int, int] = {}
        self.processes = ExitStack()

    def start(self, printed: str) -> None:
        ready = self.run_dir.path / "ready"
        says = f"sys.stdout.write({printed!r}); sys.stdout.flush(); open({str(ready)!r}, 'w').close()"
        commands = (["sleep", "60"], [sys.executable, "-c", PROGRAM.format(says)])
        for rank, command in enumerate(commands):
            with self.run_dir.log(rank).open("ab") as log:
                process = subprocess.Popen(command, stdout=log, stderr=log)
            self.processes.enter_context(process)
            self.processes.callback(process.kill)
            self.pids[rank] = process.pid
        wait_until(ready.exists, timeout_s=30, what="rank 1 to begin")
        stopped = psutil.Process(self.pids[1])
        stopped.send_signal(signal.SIGSTOP)
        wait_until(lambda: stopped.status() == psutil.STATUS_STOPPED, timeout_s=10, what="rank 1 to stop")

    def standstill(self, phase: str, step: int, seconds: float) -> list[Standstill]:
        return [Standstill(rank, phase, step, seconds, 20) for rank in (0, 1)]


@pytest.fixture
def ranks(tmp_path: Path) -> Iterator[Ranks]:
    ranks = Ranks(tmp_path / "run")
    with ranks.processes:
        yield ranks


def test_a_script_s_rank_is_told_by_what_was_reported_last_and_one_that_printed_nothing_has_no_stacks_for_a_tail(
    ranks: Ranks,
) -> None:
    ranks.start("")
    report, _ = report_hang(ranks.run_dir, ranks.config, ranks.standstill("training", 7, 20.2), ranks.pids)

    said = "rank 1 hangs: nothing was reported for 20 s, after step 7 (hang_limit_s: 20); it is stopped, as by SIGSTOP"
    assert report.message.startswith(said)
    assert "time.sleep" not in (report.log_tail or "")
    failed(ranks.run_dir, report, config=ranks.config)
    written = ranks.run_dir.read_error()
    assert written is not None
    assert written.traceback is not None
    assert written.log_tail == ""


def test_a_second_report_has_what_was_printed_and_not_the_stacks_of_the_first(ranks: Ranks) -> None:
    ranks.start("epoch 3")
    still = ranks.standstill("starting", 0, 200)[1:]
    tails = [report_hang(ranks.run_dir, ranks.config, still, ranks.pids)[0] for _ in range(2)]

    assert [each.log_tail for each in tails] == ["epoch 3", "epoch 3"]
    assert "hangs: nothing has been reported yet, for 200 s (hang_limit_s: 20); it " in tails[0].message
