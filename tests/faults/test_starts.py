"""Runs that their host cannot start: no fault of the training, and no trouble for other jobs."""

import shutil
from pathlib import Path

from jobs.states import State
from jobs.store import jobs
from tests.service import Service
from tests.waiting import wait_until


def test_a_host_that_can_no_longer_write_its_runs_costs_none_a_retry_says_why_and_has_them_again_once_it_can(
    service: Service, tmp_path: Path
) -> None:
    run_root = tmp_path / "disk" / "runs"
    service.start_worker(run_root=run_root)
    shutil.rmtree(tmp_path / "disk")
    (tmp_path / "disk").touch()
    job_id = service.submit_program("0")

    wait_until(
        lambda: f"unable to write its run root {run_root}" in str(service.job(job_id).reason),
        timeout_s=30,
        what=lambda: f"the host to be closed; {service.story(job_id)}",
    )
    assert service.job(job_id).retries == 0
    lost = service.attempts(job_id)  # none, where the host had said so before the plan
    assert len(lost) <= 1
    assert all("Not a directory" in str(each.failure) for each in lost)

    (tmp_path / "disk").unlink()
    (tmp_path / "disk" / "runs").mkdir(parents=True)
    service.wait_for(job_id, State.SUCCEEDED)
    service.assert_laws_held(job_id)


def test_a_job_that_this_version_cannot_read_keeps_no_other_from_running(service: Service) -> None:
    service.start_worker()
    other_version, unreadable = service.submit("0"), service.submit("1")
    with service.database.session_scope() as session:
        other = jobs.get(session, other_version)
        other.spec = other.spec | {"from_the_future": True}
        unknown = jobs.get(session, unreadable)
        unknown.spec, unknown.request = {"kind": "from the future"}, None
    readable = service.submit_program("1")

    service.wait_for(readable, State.SUCCEEDED)

    failed = service.wait_for(other_version, State.FAILED)
    assert failed.failure is not None
    assert "from_the_future" in failed.failure["message"]
    assert service.job(unreadable).state == State.QUEUED
    assert "cannot be read" in str(service.job(unreadable).reason)
    service.assert_laws_held(other_version, readable)
