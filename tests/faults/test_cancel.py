"""Cancel at any time: one terminal state, and the devices are free within 10 s."""

import time

import pytest
from sqlalchemy import select

from jobs.states import Intent, State
from jobs.tables import JobEvent, Lease
from tests.service import Service
from tests.waiting import wait_until


def held(service: Service, job_id: int) -> bool:
    """Whether the job holds any device."""
    with service.database.session_scope(read_only=True) as session:
        query = select(Lease.id).where(Lease.job_id == job_id, Lease.released_at.is_(None))
        return session.execute(query).first() is not None


def terminal_states(service: Service, job_id: int) -> list[str | None]:
    """Every terminal state the job ever entered."""
    terminal = [state for state in State if state.is_terminal]
    with service.database.session_scope(read_only=True) as session:
        query = select(JobEvent.to_state).where(JobEvent.job_id == job_id, JobEvent.to_state.in_(terminal))
        return list(session.scalars(query))


@pytest.mark.parametrize("delay_ms", [0, 50, 200, 1000, 3000])
def test_a_job_cancelled_this_long_after_its_claim_frees_its_devices_within_10_s(
    service: Service, delay_ms: int
) -> None:
    service.start_worker()
    job_id = service.submit(train={"epochs": 200})
    wait_until(lambda: held(service, job_id) and service.placement(job_id).claimed_at, timeout_s=30, what="the claim")
    cancel_at = time.monotonic() + delay_ms / 1000
    wait_until(lambda: time.monotonic() >= cancel_at, timeout_s=5, what="the moment to cancel", interval_s=0.005)
    service.set_intent(job_id, Intent.CANCEL)
    wait_until(lambda: not held(service, job_id), timeout_s=10, what=lambda: f"free devices; {service.story(job_id)}")
    assert service.job(job_id).state == State.CANCELLED
    assert terminal_states(service, job_id) == [State.CANCELLED]
    service.assert_laws_held(job_id)


def test_a_job_cancelled_in_the_middle_of_its_run_frees_its_devices_within_10_s(service: Service) -> None:
    service.start_worker()
    job_id = service.submit(train={"epochs": 200})
    service.wait_for_step(job_id, 3)
    service.set_intent(job_id, Intent.CANCEL)
    wait_until(lambda: not held(service, job_id), timeout_s=10, what=lambda: f"free devices; {service.story(job_id)}")
    assert terminal_states(service, job_id) == [State.CANCELLED]
    service.assert_laws_held(job_id)


def test_a_queued_job_is_cancelled_at_once_and_never_runs(service: Service) -> None:
    job_id = service.submit()
    service.set_intent(job_id, Intent.CANCEL)
    assert service.job(job_id).state == State.CANCELLED
    service.start_worker()
    after = service.submit("0", train={"epochs": 1})
    service.wait_for(after, State.SUCCEEDED)
    assert service.attempts(job_id) == []


def test_a_paused_job_frees_its_devices_and_resumes_from_where_it_was(service: Service) -> None:
    service.start_worker()
    job_id = service.submit("0", train={"epochs": 6})
    service.wait_for_step(job_id, 3)
    service.set_intent(job_id, Intent.PAUSE)
    service.wait_for(job_id, State.PAUSED)
    assert not held(service, job_id)
    service.set_intent(job_id, Intent.RUN)
    assert service.wait_for(job_id, State.SUCCEEDED).retries == 0
    _paused, resumed = service.attempts(job_id)
    assert resumed.resumed_step is not None
    assert resumed.resumed_step >= 3
    service.assert_laws_held(job_id)
