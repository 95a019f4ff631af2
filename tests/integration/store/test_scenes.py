"""What the planner sees of a database: waiting and running jobs, what is foretold of them, hosts open and closed."""

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import update

from jobs.database import now
from jobs.planner.view import RunningJob, Scene, WaitingJob
from jobs.states import Intent, Outcome
from jobs.store import attempts, hosts, jobs, maintenance, quotas, reports, scenes
from jobs.store.reports import CheckpointFile
from jobs.tables import Attempt, DeviceRow, Host, Job, Placement
from tests.integration.store.conftest import Service


def scene(service: Service) -> Scene:
    with service.database.session_scope(read_only=True) as session:
        return scenes.read(session).scene


def waiting(service: Service, job_id: int) -> WaitingJob:
    (found,) = [job for job in scene(service).waiting if job.id == job_id]
    return found


def running(service: Service, job_id: int) -> RunningJob:
    (found,) = [job for job in scene(service).running if job.id == job_id]
    return found


def train_for(service: Service, placement: Placement, seconds: float, **progress: Any) -> None:
    """Let a run have trained for so long, and report its progress."""
    mine = (Attempt.job_id == placement.job_id, Attempt.number == placement.attempt)
    with service.database.session_scope() as session:
        began = now(session) - timedelta(seconds=seconds)
        session.execute(update(Attempt).where(*mine).values(started_at=began, created_at=began))
        attempts.set_progress(session, placement, progress)


def save(service: Service, placement: Placement, *, step: int) -> None:
    """Register a checkpoint."""
    with service.database.session_scope() as session:
        path, at = f"{placement.run_dir}/checkpoints/{step}.pt", now(session)
        file = CheckpointFile(path, step, epoch=1, sha256="0" * 64, size_bytes=1, best=True, values={}, at=at)
        reports.add_checkpoint(session, placement, file)


def test_a_waiting_job_is_seen_as_it_was_submitted(service: Service) -> None:
    with service.database.session_scope() as session:
        quotas.put(session, ("label", "team=a"), max_devices=None, share=1)
    job_id = service.submit({"count": 2}, nodes=2, user="ada", labels={"team": "a"}, priority=70, preemptible=True)

    job = waiting(service, job_id)

    assert (job.priority, job.user, dict(job.labels)) == (70, "ada", {"team": "a"})
    assert (job.request.device_count, job.request.nodes, job.request.preemptible) == (4, 2, True)
    assert job.waits_from == service.job(job_id).waits_from.timestamp()
    assert (job.duration_s, job.not_before, job.reservation, job.resumes_on) == (None, None, None, None)


def test_a_job_that_nothing_is_known_of_runs_at_most_its_time_limit(service: Service) -> None:
    assert waiting(service, service.submit(time_limit_s=90)).duration_s == 90


def test_a_job_that_ran_before_takes_as_long_as_its_pace_says_from_its_checkpoint_on(service: Service) -> None:
    placement = service.run("0", time_limit_s=100_000)
    train_for(service, placement, 100, step=50, total_steps=200)
    save(service, placement, step=40)
    service.end(placement, Outcome.LOST)

    assert waiting(service, placement.job_id).duration_s == pytest.approx(160 * 2, rel=0.02)


def test_what_a_job_has_trained_is_taken_off_its_time_limit(service: Service) -> None:
    placement = service.run("0", time_limit_s=150)
    train_for(service, placement, 100, step=50, total_steps=200)
    service.end(placement, Outcome.LOST)

    assert waiting(service, placement.job_id).duration_s == pytest.approx(50, abs=2)


def test_a_job_stored_before_requests_were_is_seen_and_its_request_is_stored(service: Service) -> None:
    job_id = service.submit("1,0")
    with service.database.session_scope() as session:
        request = jobs.get(session, job_id).request
        session.execute(update(Job).values(request=None))

    assert waiting(service, job_id).request.device == "cuda:1,cuda:0"
    service.plan()

    assert service.job(job_id).request == request


def test_a_request_of_a_newer_release_is_read_from_the_spec_and_stays(service: Service) -> None:
    job_id = service.submit("1")
    newer = '{"device": "cuda:1", "per_node": 1, "from_the_future": true}'
    with service.database.session_scope() as session:
        session.execute(update(Job).values(request=newer))

    assert waiting(service, job_id).request.device == "cuda:1"
    service.plan()

    assert service.job(job_id).request == newer


def test_a_running_job_ends_as_its_pace_foretells(service: Service) -> None:
    placement = service.run("0", preemptible=True, user="ada", priority=30)
    train_for(service, placement, 100, step=50, total_steps=200)
    view = scene(service)
    (job,) = view.running

    assert job.predicted_end == pytest.approx(view.now + 300, rel=0, abs=10)
    assert (job.id, job.attempt, job.priority, job.user, job.preemptible) == (placement.job_id, 1, 30, "ada", True)
    assert len(job.device_ids) == 1
    assert not job.is_stopping


def test_a_running_job_ends_with_its_time_limit_at_the_latest(service: Service) -> None:
    placement = service.run("0", time_limit_s=130)
    train_for(service, placement, 100, step=50, total_steps=200)
    view = scene(service)

    assert view.running[0].predicted_end == pytest.approx(view.now + 30, rel=0, abs=5)


def test_a_running_job_was_saved_when_its_last_checkpoint_was(service: Service) -> None:
    placement = service.run("0")
    began = running(service, placement.job_id).saved_at
    save(service, placement, step=10)
    (attempt,) = service.attempts(placement.job_id)

    assert began == attempt.created_at.timestamp()
    assert running(service, placement.job_id).saved_at > began


def test_a_job_that_is_told_to_stop_is_on_its_way_out(service: Service) -> None:
    paused, ordered = service.run("0"), service.run("1")
    with service.database.session_scope() as session:
        jobs.set_intent(session, paused.job_id, Intent.PAUSE)
        mine = Attempt.job_id == ordered.job_id
        session.execute(update(Attempt).where(mine).values(stop_order="preempted"))

    view = scene(service)

    assert [job.is_stopping for job in view.running] == [True, True]


def test_a_job_goes_on_where_its_checkpoint_is_while_that_host_is_in_contact(service: Service) -> None:
    service.register("beta")
    placement = service.run("cpu", host="alpha")
    save(service, placement, step=40)
    service.end(placement, Outcome.LOST)

    assert waiting(service, placement.job_id).resumes_on == frozenset({"alpha"})
    assert waiting(service, placement.job_id).resume_note == "its checkpoint of step 40 is on alpha only"

    service.fall_silent("alpha")
    assert waiting(service, placement.job_id).resumes_on is None


def test_hosts_say_why_they_are_closed(service: Service) -> None:
    for name in ("beta", "gamma", "delta", "epsilon"):
        service.register(name)
    service.fall_silent("beta")
    with service.database.session_scope() as session:
        maintenance.drain(session, "gamma", note="new fan")
        # By its own limit, whatever that of the worker that plans.
        short = {"free_bytes": 4_000_000_000, "min_free_bytes": 5_000_000_000}
        session.execute(update(Host).where(Host.name == "delta").values(**short))
        ample = {"free_bytes": 500_000_000, "min_free_bytes": 400_000_000}
        session.execute(update(Host).where(Host.name == "alpha").values(**ample))
        hosts.set_fault(session, "epsilon", "unable to write its run root /runs: Read-only file system")
        session.execute(update(DeviceRow).where(DeviceRow.name == "cuda:1").values(quarantined_at=now(session)))

    view = {host.name: host for host in scene(service).hosts}

    assert view["alpha"].closed is None
    assert view["beta"].closed == "out of contact"
    assert view["gamma"].closed == "drained: new fan"
    assert view["delta"].closed == "short of disk space: 4.0 GB left on its run root, below 5.0 GB"
    assert view["epsilon"].closed == "unable to write its run root /runs: Read-only file system"
    assert {device.name for device in view["alpha"].devices if device.quarantined} == {"cuda:1"}
