"""A job that its user stops before it runs, or for a while; the matrix cancels jobs at any instant."""

from sqlalchemy import select

from jobs.states import Intent, State
from jobs.tables import Lease
from tests.service import Service


def held(service: Service, job_id: int) -> bool:
    """Whether the job holds any device."""
    with service.database.session_scope(read_only=True) as session:
        query = select(Lease.id).where(Lease.job_id == job_id, Lease.released_at.is_(None))
        return session.execute(query).first() is not None


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
