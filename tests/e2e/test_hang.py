"""A rank that stands still, as whoever asks the API learns of it."""

import os
import signal
import time
from pathlib import Path

import pytest

from rankzero.client import Client
from tests.e2e.test_lifecycle import step_of
from tests.service import DIGITS
from tests.waiting import wait_until
from worker.processes import marked_processes

pytestmark = pytest.mark.timeout(300)

LIMIT_S = 5.0
NAMED_WITHIN_S = 30.0


def rank_pid(run_dir: str, local_rank: int) -> int:
    """The process of one rank of a run."""
    mark = f"\0LOCAL_RANK={local_rank}\0".encode()
    runs = [process.pid for process in marked_processes() if process.run_dir == run_dir]
    (pid, *_loaders) = sorted(pid for pid in runs if mark in Path(f"/proc/{pid}/environ").read_bytes())
    return pid


def test_a_stuck_rank_is_named_with_its_stack_soon_after_its_limit_and_the_job_is_tried_again(client: Client) -> None:
    job = client.submit(device="0,1", train=DIGITS | {"epochs": 30}, hang_limit_s=LIMIT_S, time_limit_s=200)
    wait_until(lambda: step_of(client.get(job.id)) >= 3, timeout_s=120, what="the job to train")
    placement = client.attempts(job.id)[0].placements[0]
    os.kill(rank_pid(placement.run_dir, 1), signal.SIGSTOP)
    stuck_at = time.monotonic()
    wait_until(
        lambda: client.attempts(job.id)[0].outcome is not None,
        timeout_s=LIMIT_S + NAMED_WITHIN_S,
        what="the attempt to end",
    )
    assert time.monotonic() - stuck_at > LIMIT_S - 1

    hung = client.attempts(job.id)[0]
    failure = hung.failure
    assert failure is not None
    assert (hung.outcome, failure.cause, failure.rank) == ("lost", "hang", 1), failure
    assert "rank 1" in failure.message
    assert 'File "' in (failure.traceback or "")
    assert failure.log_tail is not None
    stacks = "".join(chunk.text for chunk in client.logs(job.id, rank=0))
    assert "most recent call first" in stacks, "the other ranks' stacks are in their logs"
    wait_until(lambda: len(client.attempts(job.id)) == 2, timeout_s=60, what="another try")
    wait_until(lambda: client.get(job.id).state == "running", timeout_s=60, what="it to train again")
    client.cancel(job.id)
    assert client.wait(job.id, timeout_s=60).state == "cancelled"
