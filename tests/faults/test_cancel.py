"""A job that its user stops before it runs, at its start, or for a while; the matrix cancels jobs at any instant."""

import time

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


def test_jobs_cancelled_0_to_3000_ms_after_their_claim_free_their_devices_within_10_s_and_run_no_more(
    service: Service,
) -> None:
    service.start_worker()
    job_ids = []
    for delay_ms in (0, 50, 200, 1000, 3000):
        job_id = service.submit("0,1", train={"epochs": 200})
        job_ids.append(job_id)
        service.wait_for_supervisor(job_id)
        time.sleep(delay_ms / 1000)  # the case itself
        service.set_intent(job_id, Intent.CANCEL)
        wait_until(lambda: not held(service, job_id), timeout_s=10, what=lambda: f"devices; {service.story(job_id)}")  # noqa: B023  (called in this turn)
        assert service.job(job_id).state == State.CANCELLED
    for job_id in job_ids:
        assert terminal_states(service, job_id) == [State.CANCELLED]
        assert service.job(job_id).attempt == 1
    service.assert_laws_held(*job_ids)


def test_a_queued_job_is_cancelled_at_once_and_never_runs(service: Service) -> None:
    job_id = service.submit()
    service.set_intent(job_id, Intent.CANCEL)
    assert service.job(job_id).state == State.CANCELLED
    service.start_worker()
    after = service.submit_program("0", steps=1)
    service.wait_for(after, State.SUCCEEDED)
    assert service.attempts(job_id) == []


def test_a_paused_job_frees_its_devices_and_resumes_from_where_it_was(service: Service) -> None:
    service.start_worker()
    job_id = service.submit("0", train={"epochs": 3})
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
