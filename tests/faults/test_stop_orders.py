"""Runs that the service itself stops: for a more urgent job, for a drained host, at their time limit."""

import pytest

from jobs.states import Intent, Outcome, State
from jobs.store import maintenance
from tests.service import Service

pytestmark = pytest.mark.timeout(240)


def steps(service: Service, job_id: int, attempt: int) -> list[int]:
    """The steps whose figures are those of an attempt."""
    return [each.step for each in service.metrics(job_id) if each.name == "train/loss" and each.attempt == attempt]


def test_a_preempted_job_saves_makes_room_and_finishes_later_as_if_it_had_been_left_alone(service: Service) -> None:
    service.start_worker(preemption_patience_s=0)  # these runs are over within seconds anyhow
    undisturbed = service.submit("0", train={"epochs": 3})
    victim = service.submit("1", train={"epochs": 3}, priority=10, preemptible=True, max_retries=0)
    service.wait_for_step(victim, 3)
    urgent = service.submit_program("1", steps=5, priority=90)

    for job_id in (urgent, victim, undisturbed):
        service.wait_for(job_id, State.SUCCEEDED)

    stopped, resumed = service.attempts(victim)
    assert [stopped.outcome, resumed.outcome] == [Outcome.PREEMPTED, Outcome.SUCCEEDED]
    assert stopped.stop_message == f"preempted by job {urgent}"
    assert service.job(victim).retries == 0
    assert resumed.resumed_step == max(steps(service, victim, 1))
    (first,) = service.attempts(urgent)
    assert stopped.ended_at is not None
    assert first.ended_at is not None
    assert stopped.ended_at <= first.created_at
    assert first.ended_at <= resumed.created_at
    service.assert_laws_held(undisturbed, victim, urgent)
    service.assert_same_series(victim, undisturbed)


def test_a_job_on_a_host_that_is_drained_of_its_jobs_saves_and_goes_on_elsewhere(service: Service) -> None:
    for name in ("alpha", "beta"):
        service.start_worker(name, run_root=service.folder / "runs")
    job_id = service.submit({"count": 1}, train={"epochs": 200}, max_retries=0)
    service.wait_for_step(job_id, 3)
    assert service.placement(job_id).host_name == "alpha"

    with service.database.session_scope() as session:
        maintenance.drain(session, "alpha", note="new disks", evict=True)
    service.wait_for_attempt(job_id, 2)

    stopped, resumed = service.attempts(job_id)
    assert (stopped.outcome, stopped.stop_message) == (Outcome.PREEMPTED, "host alpha is drained: new disks")
    assert service.placement(job_id).host_name == "beta"
    assert resumed.resumed_step == max(steps(service, job_id, 1))
    assert service.job(job_id).retries == 0
    service.set_intent(job_id, Intent.CANCEL)
    service.wait_for(job_id, State.CANCELLED)
    service.assert_laws_held(job_id)


def test_a_job_that_has_trained_for_its_time_limit_saves_and_has_failed(service: Service) -> None:
    service.start_worker()
    job_id = service.submit("0", train={"epochs": 200}, time_limit_s=2)

    failed = service.wait_for(job_id, State.FAILED)

    assert failed.failure is not None
    assert failed.failure["cause"] == "time_limit"
    assert failed.failure["message"] == "time_limit_s: it has trained for its 2 s, over all attempts"
    assert failed.failure["log_tail"]
    assert service.checkpoints(job_id)[-1].step == max(steps(service, job_id, 1))
    assert [attempt.outcome for attempt in service.attempts(job_id)] == [Outcome.FAILED]
    service.assert_laws_held(job_id)
