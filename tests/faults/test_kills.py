"""What a run tells of the death of its worker, its supervisor or a rank, and what that costs it."""

import os
import signal
from pathlib import Path

import pytest

from jobs.states import State
from tests.service import Service

pytestmark = pytest.mark.timeout(240)  # whole runs, several in a row

LONG = 100
"""Steps: some seconds."""


def test_the_run_goes_on_when_its_worker_is_killed(service: Service) -> None:
    worker = service.start_worker()
    job_id = service.submit_program("0", steps=LONG)
    service.wait_for_step(job_id, 3)
    worker.kill()
    worker.wait()
    service.wait_for(job_id, State.SUCCEEDED)
    assert [attempt.number for attempt in service.attempts(job_id)] == [1]
    service.assert_laws_held(job_id)


def test_a_killed_rank_is_named_and_the_job_is_retried(service: Service) -> None:
    service.start_worker()
    job_id = service.submit_program(steps=LONG)
    service.wait_for_step(job_id, 3)
    os.kill(rank_pid(service, job_id, rank=1), signal.SIGKILL)
    service.wait_for(job_id, State.SUCCEEDED)
    lost, _retried = service.attempts(job_id)
    assert lost.failure is not None
    assert (lost.failure["cause"], lost.failure["rank"], lost.failure["signal"]) == ("killed_by_signal", 1, "SIGKILL")
    service.assert_laws_held(job_id)


def test_a_job_whose_supervisor_dies_again_and_again_fails_within_its_budget(service: Service) -> None:
    service.start_worker()
    job_id = service.submit_program("0", steps=LONG, max_retries=1)
    for attempt in (1, 2):
        service.wait_for_attempt(job_id, attempt)
        os.kill(service.supervisor_pid(job_id), signal.SIGKILL)
    failed = service.wait_for(job_id, State.FAILED)
    assert failed.failure is not None
    assert failed.failure["cause"] == "lost"
    service.assert_laws_held(job_id)


def test_runs_that_end_with_their_worker_are_saved_first_and_spend_no_retry(service: Service) -> None:
    worker = service.start_worker(runs_outlive_worker=False)
    job_id = service.submit("0", train={"epochs": 3})  # what saves itself when it is asked to stop
    service.wait_for_step(job_id, 3)
    worker.terminate()
    worker.wait(timeout=60)
    queued = service.job(job_id)
    assert (queued.state, queued.retries) == (State.QUEUED, 0)
    assert service.rank_pids(job_id) == []
    saved = service.checkpoints(job_id)[-1]
    assert saved.step >= 3
    service.start_worker()
    service.wait_for(job_id, State.SUCCEEDED)
    assert service.attempts(job_id)[-1].resumed_step == saved.step
    service.assert_laws_held(job_id)


def rank_pid(service: Service, job_id: int, *, rank: int) -> int:
    """The process of one rank, by its environment."""
    marks = [(pid, Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")) for pid in service.rank_pids(job_id)]
    (pid,) = [pid for pid, environment in marks if f"RANK={rank}".encode() in environment]
    return pid
