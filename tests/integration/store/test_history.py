"""The past of a service as a stream: which jobs are in it, and with what."""

import json
from datetime import timedelta

import pytest
from sqlalchemy import select

from jobs import simulate
from jobs.planner.request import Request
from jobs.settings import get_settings
from jobs.simulation.stream import StreamJob
from jobs.states import Intent, Outcome
from jobs.store import history, jobs
from jobs.tables import Attempt, Job
from tests.integration.store.conftest import Service


@pytest.fixture
def job_id(service: Service) -> int:
    """A failed job on both devices: two attempts of 100 s each, after which it was half done."""
    first = service.run("0,1", priority=80, user="ada", labels={"team": "vision"}, time_limit_s=900)
    service.end(first, Outcome.LOST)
    (second,) = service.plan()
    service.end(service.claim(second), Outcome.FAILED)
    with service.database.session_scope() as session:
        session.get_one(Job, first.job_id).progress = {"step": 50, "total_steps": 100}
        for attempt in session.scalars(select(Attempt).where(Attempt.job_id == first.job_id)):
            assert attempt.ended_at is not None
            attempt.created_at = attempt.ended_at - timedelta(seconds=100)
    return first.job_id


def past(service: Service) -> list[StreamJob]:
    with service.database.session_scope(read_only=True) as session:
        return history.read(session)


@pytest.mark.usefixtures("job_id")
def test_a_job_that_has_ended_is_one_run_of_all_its_attempts(service: Service) -> None:
    (job,) = past(service)
    assert job == StreamJob(
        submitted_s=0,
        runs_s=200,
        request=Request(device="cuda:0,cuda:1", per_node=2, time_limit_s=900),
        priority=80,
        user="ada",
        labels={"team": "vision"},
        foretold_s=400,
    )


def test_jobs_that_never_ran_or_have_not_ended_are_not_in_it(service: Service) -> None:
    service.run("0")
    never_ran = service.submit("1")
    with service.database.session_scope() as session:
        jobs.set_intent(session, never_ran, Intent.CANCEL)
    assert past(service) == []


@pytest.mark.usefixtures("job_id")
def test_a_service_s_own_past_is_simulated_on_its_own_hosts(
    service: Service, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    service.fall_silent("alpha")  # the hosts of the past are open, whatever they are now
    monkeypatch.setenv("RANKZERO_DATABASE_URL", service.database.url.render_as_string(hide_password=False))
    get_settings.cache_clear()
    assert simulate.main(["--from-database", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["hosts"], found["devices"], found["ended"], found["simulated_s"]) == (1, 4, 1, 200)
