"""A paused job that goes on elsewhere: what it trains stays, where it does changes."""

from typing import Any

import pytest
from pydantic import ValidationError

from jobs.changes import Place
from jobs.errors import InvalidChangesError, StateConflictError
from jobs.states import Intent, State
from jobs.store import verbs
from jobs.tables import Job
from tests.integration.store.conftest import Service


def paused(service: Service, device: str = "0,1", **fields: Any) -> int:
    job_id = service.submit(device, **fields)
    pause(service, job_id)
    return job_id


def pause(service: Service, job_id: int) -> None:
    with service.database.session_scope() as session:
        verbs.pause(session, job_id)


def go_on(service: Service, job_id: int, **place: Any) -> Job:
    with service.database.session_scope() as session:
        return verbs.resume(session, job_id, Place.model_validate(place))


def test_a_paused_job_goes_on_elsewhere_and_what_it_trains_stays(service: Service) -> None:
    service.register()
    job_id = paused(service)
    before = service.job(job_id).spec

    job = go_on(service, job_id, device=[1])

    assert (job.state, job.spec) == (State.QUEUED, before | {"device": "cuda:1"})
    assert [each.devices for each in service.plan()] == [["cuda:1"]]
    event = next(event for event in service.events(job_id) if event.kind == "change")
    assert event.detail == {"device": {"from": "cuda:0,cuda:1", "to": "cuda:1"}}


def test_a_place_that_the_training_does_not_fit_is_refused_and_the_job_stays_paused(service: Service) -> None:
    job_id = paused(service)
    with pytest.raises(InvalidChangesError) as refused:
        go_on(service, job_id, device={"count": 3})

    assert isinstance(refused.value.__cause__, ValidationError)
    assert service.job(job_id).state == State.PAUSED


def test_only_a_paused_job_goes_on_elsewhere(service: Service) -> None:
    service.register()
    placement = service.run("0")
    pause(service, placement.job_id)  # its ranks have not stopped yet
    with pytest.raises(StateConflictError, match="only a paused one can go on elsewhere"):
        go_on(service, placement.job_id, device="1")

    assert service.job(placement.job_id).intent == Intent.PAUSE
