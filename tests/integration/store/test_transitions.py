"""The one function that changes a state: along the table only, from the state it was told, with an event."""

from itertools import product

import pytest
from sqlalchemy import update

from jobs.database import now
from jobs.errors import IllegalTransitionError
from jobs.states import TRANSITIONS, State
from jobs.store import jobs
from jobs.store.transitions import move
from jobs.tables import Job
from tests.integration.store.conftest import Service


def put(service: Service, state: State) -> int:
    """A job that is in `state`, by force."""
    job_id = service.submit()
    with service.database.session_scope() as session:
        session.execute(update(Job).where(Job.id == job_id).values(state=state))
    return job_id


def go(service: Service, job_id: int, to: State) -> bool:
    with service.database.session_scope() as session:
        return move(session, jobs.get(session, job_id), to, at=now(session))


def test_exactly_the_transitions_of_the_table_are_made_and_each_is_an_event(service: Service) -> None:
    for source, target in product(State, State):
        job_id = put(service, source)
        if target in TRANSITIONS[source]:
            assert go(service, job_id, target)
            assert service.state(job_id) == target
            assert service.moves(job_id) == [(source, target)]
            continue
        before = service.everything()
        with pytest.raises(IllegalTransitionError, match=f"{source} -> {target}"):
            go(service, job_id, target)
        assert service.everything() == before


def test_a_job_that_moved_on_since_it_was_read_stays_where_it_is(service: Service) -> None:
    job_id = service.submit()
    with service.database.session_scope(read_only=True) as session:
        read = jobs.get(session, job_id)
    go(service, job_id, State.CANCELLED)
    before = service.everything()

    with service.database.session_scope() as session:
        assert move(session, read, State.STARTING, at=now(session)) is False

    assert service.everything() == before


def test_a_job_whose_next_attempt_has_begun_is_not_moved_by_one_who_read_it_before(service: Service) -> None:
    placement = service.run()
    with service.database.session_scope(read_only=True) as session:
        read = jobs.get(session, placement.job_id)
    with service.database.session_scope() as session:
        session.execute(update(Job).where(Job.id == read.id).values(attempt=2))

    with service.database.session_scope() as session:
        assert move(session, read, State.FAILED, at=now(session)) is False

    assert service.state(placement.job_id) == "running"


def test_a_final_state_has_its_time_and_a_job_queued_again_a_new_one(service: Service) -> None:
    ended, again = put(service, State.RUNNING), put(service, State.RUNNING)
    before = service.job(again).queued_at

    go(service, ended, State.FAILED)
    go(service, again, State.QUEUED)

    assert service.job(ended).finished_at is not None
    assert service.job(again).finished_at is None
    assert service.job(again).queued_at > before


def test_a_reason_to_wait_is_gone_with_the_wait(service: Service) -> None:
    job_id = service.submit("7")
    assert service.job(job_id).reason is not None

    go(service, job_id, State.CANCELLED)

    assert service.job(job_id).reason is None
