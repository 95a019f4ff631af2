"""Runs that stand still: the rank that hangs is named with its stack, soon after its limit, and nothing is left."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.distributed.runs import Run, prepare, processes_of
from tests.distributed.slow_model import SlowModel
from tests.ports import PortClaim
from trainer.caller import Call, pack, write_call
from trainer.config import TrainConfig
from trainer.error_report import ErrorReport
from trainer.errors import Cause
from trainer.run_dir import EXIT_FAILED, RunConfig, RunDir

LIMIT_S = 4.0
"""More than a batch of these runs takes on a busy machine; they may take ten times as long to start."""
NAMED_WITHIN_S = 30.0

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def port() -> Iterator[int]:
    claim = PortClaim()
    yield claim.port
    claim.release()


def hang(run: Run, stuck_since: Callable[[], float]) -> ErrorReport:
    """Wait for the end, which has to be told as a hang in time, and return what error.json says."""
    since = stuck_since()
    assert run.wait() == EXIT_FAILED, run.output()
    assert time.monotonic() - since < LIMIT_S + NAMED_WITHIN_S
    assert not processes_of(run.run_dir)
    error = run.run_dir.read_error()
    assert error is not None
    assert error.cause is Cause.HANG, run.output()
    return error


def reached(run: Run, *, step: int) -> float:
    """Return when a run has taken so many steps."""
    run.wait_for_step(step)
    return time.monotonic()


def test_a_rank_whose_loader_is_stuck_is_named_with_the_loader_s_stack(tmp_path: Path, images: Path) -> None:
    run = Run(prepare(tmp_path / "run", data=images, epochs=50, batch=4, num_workers=1, hang_limit_s=LIMIT_S))

    def since() -> float:
        run.wait_for_step(2)
        loaders = [child for child in run.rank_process(1).children() if "trainer.rank" in child.cmdline()]
        loaders[0].suspend()
        return time.monotonic()

    error = hang(run, since)
    assert error.rank == 1
    assert "it waits for its loader processes, in " in error.message
    assert error.traceback is not None
    assert "In loader process 0, which is stopped:\n" in error.traceback
    assert " in _worker_loop\n" in error.traceback


def test_a_stopped_rank_is_named_as_stopped(tmp_path: Path, images: Path) -> None:
    run = Run(prepare(tmp_path / "run", data=images, epochs=50, batch=4, hang_limit_s=LIMIT_S))

    def since() -> float:
        run.wait_for_step(2)
        run.rank_process(0).suspend()
        return time.monotonic()

    error = hang(run, since)
    assert error.rank == 0
    assert "it is stopped, as by SIGSTOP, in " in error.message
    assert error.traceback is not None


def test_a_program_that_reports_no_more_is_named_with_the_line_that_it_waits_in(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import threading\n"
        "from rankzero import report\n"
        "print('begins')\n"
        "for step in range(3):\n"
        "    report(step=step, loss=1)\n"
        "lock = threading.Lock()\n"
        "lock.acquire()\n"
        "lock.acquire()\n"
    )
    run_dir = RunDir(tmp_path / "run")
    script = TrainConfig.model_validate({"recipe": "script", "options": {"script": str(program)}})
    run_dir.create(RunConfig(train=script, devices=("cpu",), hang_limit_s=1))
    run = Run(run_dir)

    error = hang(run, lambda: reached(run, step=2))
    assert error.rank == 0
    assert error.message.endswith(" s, after step 2 (hang_limit_s: 1); it is in <module> (program.py:8)")
    assert error.message.startswith("rank 0 hangs: nothing was reported for ")
    assert error.log_tail == "begins"


def test_a_rank_that_is_stuck_in_c_is_named_with_its_line_and_not_the_one_of_another_node_that_waits_for_it(
    tmp_path: Path, images: Path, port: int
) -> None:
    nodes = []
    for node_rank in (0, 1):
        run_dir = prepare(
            tmp_path / f"node-{node_rank}",
            data=images,
            ranks=1,
            call=True,
            model="SlowModel",
            epochs=5,
            batch=4,
            hang_limit_s=LIMIT_S,
        )
        write_call(run_dir, pack(Call(SlowModel(image_size=32, stuck_at=2), ())))
        told = {"nnodes": 2, "node_rank": node_rank, "master_port": port}
        run_dir.create(run_dir.read_config().model_copy(update=told))
        nodes.append(Run(run_dir))
    waiting, stuck = nodes

    error = hang(stuck, lambda: reached(waiting, step=2))
    assert error.rank == 1
    assert error.message.startswith("rank 1 hangs: no progress for ")
    said = f"in training, after step 2 (hang_limit_s: {LIMIT_S:g}); it is in wait_for_ever (slow_model.py:"
    assert said in error.message
    assert error.traceback is not None
    assert " in wait_for_ever\n" in error.traceback
    assert " in forward\n" in error.traceback
    assert waiting.wait() == EXIT_FAILED
    lost = waiting.run_dir.read_error()
    assert lost is not None
    assert (lost.cause, lost.rank) == (Cause.COMMUNICATION, None)
    assert "_engine_run_backward" in waiting.run_dir.log(0).read_text()  # it was asked where it is
