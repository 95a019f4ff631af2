"""Runs that their host cannot start: no fault of the training, and no trouble for other jobs."""

from pathlib import Path

from jobs.states import Outcome, State
from jobs.store import jobs
from tests.service import Service


def test_a_host_that_cannot_write_its_runs_loses_them_and_says_why(service: Service, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    service.start_worker(run_root=tmp_path / "file" / "runs")
    job_id = service.submit("0", max_retries=1)

    failed = service.wait_for(job_id, State.FAILED, timeout_s=30)

    assert [attempt.outcome for attempt in service.attempts(job_id)] == [Outcome.LOST, Outcome.LOST]
    assert failed.retries == 1
    assert failed.failure is not None
    assert failed.failure["cause"] == "lost"
    assert "Not a directory" in failed.failure["message"]
    assert str(tmp_path / "file" / "runs") in failed.failure["message"]
    service.assert_laws_held(job_id)


def test_a_job_that_this_version_cannot_read_keeps_no_other_from_running(service: Service) -> None:
    service.start_worker()
    other_version, unreadable = service.submit("0"), service.submit("1")
    with service.database.session_scope() as session:
        other = jobs.get(session, other_version)
        other.spec = other.spec | {"from_the_future": True}
        jobs.get(session, unreadable).spec = {"kind": "from the future"}
    readable = service.submit("1", train={"epochs": 1})

    service.wait_for(readable, State.SUCCEEDED)

    failed = service.wait_for(other_version, State.FAILED)
    assert failed.failure is not None
    assert "from_the_future" in failed.failure["message"]
    assert service.job(unreadable).state == State.QUEUED
    assert "cannot be read" in str(service.job(unreadable).reason)
    service.assert_laws_held(other_version, readable)
