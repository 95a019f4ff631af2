"""Programs of the user's own as jobs: from POST over HTTP through two ranks to what they report, or to their end."""

from pathlib import Path
from typing import Any

import pytest

from rankzero.client import Client
from rankzero.errors import RefusedError
from tests.waiting import wait_until
from worker.processes import marked_processes

pytestmark = pytest.mark.timeout(300)

EXAMPLE = Path(__file__).parents[2] / "examples" / "ddp_script.py"


def script(path: Path, **options: Any) -> dict[str, Any]:
    return {"recipe": "script", "options": {"script": str(path), **options}}


def are_free(client: Client) -> bool:
    return all(device.held_by is None for host in client.hosts() for device in host.devices)


def test_a_textbook_ddp_program_trains_on_two_ranks_and_its_metrics_and_checkpoints_come_back(
    client: Client, tmp_path: Path
) -> None:
    job = client.submit(device="cpu", nproc_per_node=2, train=script(EXAMPLE, args=["--epochs", 2]))
    assert (job.name, job.world_size) == ("ddp_script.py", 2)
    over = client.wait(job.id, timeout_s=120)
    assert over.state == "succeeded", over.failure
    losses = list(client.metrics(job.id, names=["loss"]))
    assert [(metric.step, metric.epoch) for metric in losses] == [(step, 1 + (step > 32)) for step in range(1, 65)]
    assert losses[0].value is not None
    assert losses[-1].value is not None
    assert losses[-1].value < losses[0].value * 0.6  # it learns
    saved = sorted(client.checkpoints(job.id), key=lambda each: each.step)
    assert [(each.step, Path(each.path).name) for each in saved] == [(32, "epoch-1.pt"), (64, "epoch-2.pt")]
    fetched = client.download_checkpoint(job.id, "last", tmp_path)
    assert fetched.stat().st_size == saved[-1].size_bytes
    assert over.progress is not None
    assert (over.progress.step, over.progress.total_steps) == (64, None)


def test_a_program_that_is_cancelled_leaves_its_devices_and_no_process(client: Client, tmp_path: Path) -> None:
    program = tmp_path / "endless.py"
    program.write_text("import time, rankzero\nrankzero.report(step=1, loss=1)\nwhile True:\n    time.sleep(1)\n")
    job = client.submit(device="0,1", train=script(program))
    wait_until(lambda: list(client.metrics(job.id)), timeout_s=60, what="its first report")
    client.cancel(job.id)
    cancelled = client.wait(job.id, timeout_s=30)
    assert (cancelled.state, cancelled.attempt) == ("cancelled", 1)
    assert are_free(client)
    (attempt,) = client.attempts(job.id)
    run_dir = attempt.placements[0].run_dir
    assert [process for process in marked_processes() if process.run_dir == run_dir] == []


RAISES_IN_EPOCH_2 = """\
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
for epoch in (1, 2):
    if (epoch, dist.get_rank()) == (2, 1):
        raise LookupError("no such thing")
    dist.all_reduce(torch.ones(1))
"""


def test_a_rank_that_raises_while_the_others_wait_in_a_collective_is_told_of_with_its_traceback_within_40_s(
    client: Client, tmp_path: Path
) -> None:
    program = tmp_path / "faulty.py"
    program.write_text(RAISES_IN_EPOCH_2)
    job = client.submit(device="2,3", train=script(program))
    failed = client.wait(job.id, timeout_s=40)
    assert (failed.state, failed.attempt) == ("failed", 1)
    assert failed.failure is not None
    assert (failed.failure.cause, failed.failure.rank) == ("exception", 1)
    assert failed.failure.message == "LookupError: no such thing"
    assert failed.failure.traceback is not None
    assert failed.failure.traceback.splitlines()[1] == f'  File "{program}", line 7, in <module>'
    assert are_free(client)


def test_a_program_that_lost_a_rank_is_tried_again_and_goes_on_from_its_checkpoint(
    client: Client, tmp_path: Path
) -> None:
    program = tmp_path / "killed.py"
    program.write_text(
        "import os, signal, rankzero\n"
        "saved = rankzero.resume_path()\n"
        "if saved:\n"
        "    rankzero.report(step=2, resumed=float(saved.read_text()))\n"
        "elif os.environ['RANK'] == '0':\n"
        "    open('saved.txt', 'w').write('42')\n"
        "    rankzero.checkpoint('saved.txt', step=1)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    job = client.submit(device="4,5", train=script(program))
    over = client.wait(job.id, timeout_s=60)
    assert (over.state, over.attempt) == ("succeeded", 2)
    lost, again = client.attempts(job.id)
    assert (lost.resumed_step, again.resumed_step) == (None, 1)
    assert lost.failure is not None
    assert (lost.failure.cause, lost.failure.rank) == ("killed_by_signal", 0)
    assert [(metric.attempt, metric.step, metric.value) for metric in client.metrics(job.id)] == [(2, 2, 42.0)]


def test_options_that_are_none_are_refused_by_name(client: Client) -> None:
    with pytest.raises(RefusedError) as refused:
        client.submit(device="cpu", train=script(Path("relative.py")))
    assert refused.value.status == 422
    assert refused.value.fields == {
        "train.options.script": "'relative.py' has to be an absolute path, on the host that trains"
    }
