"""Jobs in the store: submitted, found again, and brought to what their user wants."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select, text

from jobs.database import Database, now
from jobs.errors import NotFoundError
from jobs.spec import JobSpec
from jobs.states import Intent, Outcome, State
from jobs.store import jobs, search
from jobs.tables import Host
from tests.integration.store.conftest import Service, times


def find(service: Service, **filters: Any) -> list[int]:
    with service.database.session_scope(read_only=True) as session:
        return [job.id for job in session.scalars(search.select_jobs(**filters))]


def want(service: Service, job_id: int, intent: Intent) -> str:
    with service.database.session_scope() as session:
        return jobs.set_intent(session, job_id, intent).state


def test_a_submitted_job_is_queued_and_its_spec_comes_back_whole(service: Service) -> None:
    job_id = service.submit("0,1", name="digits 🚀", priority=70, labels={"team": "vision"})

    job = service.job(job_id)
    spec = JobSpec.model_validate(job.spec)
    assert (job.state, job.intent, job.attempt, job.retries) == ("queued", "run", 0, 0)
    assert (job.name, job.priority, job.labels) == ("digits 🚀", 70, {"team": "vision"})
    assert (spec.device, spec.world_size, spec.train.data) == ("cuda:0,cuda:1", 2, "digits")


def test_a_job_without_a_name_takes_that_of_its_model(service: Service) -> None:
    assert service.job(service.submit()).name == "mlp"


def test_a_submission_is_an_event(service: Service) -> None:
    (event,) = service.events(service.submit())

    assert (event.kind, event.attempt, event.to_state) == ("submitted", 0, "queued")


def test_an_unknown_job_is_not_found_however_large_its_number(service: Service) -> None:
    for job_id in (-1, 0, 1, 2**31, 2**63, 2**70):
        with (
            pytest.raises(NotFoundError, match=str(job_id)),
            service.database.session_scope(read_only=True) as session,
        ):
            jobs.get(session, job_id)
        with pytest.raises(NotFoundError, match=str(job_id)), service.database.session_scope() as session:
            jobs.set_intent(session, job_id, Intent.CANCEL)


def test_jobs_are_listed_newest_first(service: Service) -> None:
    ids = [service.submit() for _ in range(3)]

    assert find(service) == ids[::-1]


@pytest.mark.parametrize("sort", search.SORTS)
def test_jobs_sort_by_each_key_and_equal_ones_by_their_number(service: Service, sort: str) -> None:
    wanted = [("b", 50), ("a", 90), ("c", 10), ("a", 50), ("b", 90)]
    rows = [(service.submit(name=name, priority=priority), name, priority) for name, priority in wanted]
    keys = {
        "id": lambda row: row[0],
        "created_at": lambda row: row[0],
        "name": lambda row: (row[1], row[0]),
        "priority": lambda row: (row[2], row[0]),
    }

    expected = sorted(rows, key=keys[sort.removeprefix("-")], reverse=sort.startswith("-"))

    assert find(service, sort=sort) == [job_id for job_id, _, _ in expected]


def test_jobs_are_filtered_by_any_of_several_states(service: Service) -> None:
    running, queued, cancelled = service.run("0").job_id, service.submit("0"), service.submit("1")
    want(service, cancelled, Intent.CANCEL)

    assert find(service, states=[State.RUNNING, State.CANCELLED]) == [cancelled, running]
    assert find(service, states=[State.QUEUED]) == [queued]


def test_a_name_filter_matches_any_part_and_takes_wildcards_literally(service: Service) -> None:
    percent, under, plain = service.submit(name="50% off"), service.submit(name="a_b"), service.submit(name="aXb-50")

    assert find(service, name="50%") == [percent]
    assert find(service, name="a_b") == [under]
    assert find(service, name="A") == [plain, under]


@pytest.mark.parametrize(
    "key",
    [
        "team",
        "a.b",
        "a.b.c",
        "per%cent",
        "%s",
        'quo"te',
        "apos'trophe",
        "back\\slash",
        "🚀",
        "точность",
        "$",
        "[0]",
        "0",
    ],
)
def test_a_label_with_any_key_is_found_and_only_by_its_own_value(service: Service, key: str) -> None:
    mine = service.submit(labels={key: "vision", "other": "text"})
    service.submit(labels={key: "text"})
    service.submit(labels={"other": "vision"})

    assert find(service, labels={key: "vision"}) == [mine]
    assert find(service, labels={key: "vision", "other": "text"}) == [mine]
    assert find(service, labels={key: "vision", "other": "vision"}) == []


@pytest.mark.parametrize("value", ["", "🚀", "100%", 'say "hi"', "it's", "true", "1", "null", "a\nb", "\\u0041"])
def test_a_label_is_found_by_any_value(service: Service, value: str) -> None:
    mine = service.submit(labels={"key": value})
    service.submit(labels={"key": "something else"})
    service.submit()

    assert find(service, labels={"key": value}) == [mine]


def test_cancelling_a_queued_job_ends_it_at_once(service: Service) -> None:
    job_id = service.submit()

    assert want(service, job_id, Intent.CANCEL) == "cancelled"

    assert service.job(job_id).finished_at is not None
    assert [event.kind for event in service.events(job_id)] == ["submitted", "intent", "state"]
    assert service.plan() == []


def test_a_paused_job_leaves_the_queue_and_comes_back(service: Service) -> None:
    job_id = service.submit()

    assert want(service, job_id, Intent.PAUSE) == "paused"
    assert service.plan() == []
    assert want(service, job_id, Intent.RUN) == "queued"
    assert [placement.job_id for placement in service.plan()] == [job_id]


def test_a_paused_job_can_be_cancelled(service: Service) -> None:
    job_id = service.submit()
    want(service, job_id, Intent.PAUSE)

    assert want(service, job_id, Intent.CANCEL) == "cancelled"


def test_cancelling_a_running_job_leaves_its_state_to_the_supervisor(service: Service) -> None:
    placement = service.run()

    assert want(service, placement.job_id, Intent.CANCEL) == "running"

    assert service.job(placement.job_id).intent == "cancel"
    assert len(service.live_leases()) == 1


def test_a_job_that_is_to_be_cancelled_can_not_be_wanted_back(service: Service) -> None:
    placement = service.run()
    want(service, placement.job_id, Intent.CANCEL)

    want(service, placement.job_id, Intent.RUN)
    want(service, placement.job_id, Intent.PAUSE)

    assert service.job(placement.job_id).intent == "cancel"


def test_an_intent_written_twice_is_one_event(service: Service) -> None:
    placement = service.run()

    want(service, placement.job_id, Intent.CANCEL)
    want(service, placement.job_id, Intent.CANCEL)

    assert [event.kind for event in service.events(placement.job_id)].count("intent") == 1


@pytest.mark.parametrize("outcome", [Outcome.SUCCEEDED, Outcome.FAILED, Outcome.CANCELLED])
def test_a_finished_job_stays_as_it_is_whatever_its_user_wants(service: Service, outcome: Outcome) -> None:
    placement = service.run()
    service.end(placement, outcome)
    before = service.everything()

    for intent in Intent:
        want(service, placement.job_id, intent)

    assert service.everything() == before


def test_every_time_is_aware_utc_and_close_to_the_databases_clock(service: Service) -> None:
    placement = service.run()
    service.end(placement, Outcome.SUCCEEDED)

    with service.database.session_scope(read_only=True) as session:
        at = now(session)
        rows = [*service.attempts(placement.job_id), *service.leases(placement), *service.events(placement.job_id)]
        rows += [service.job(placement.job_id), *session.scalars(select(Host))]
    for row in rows:
        for column, value in times(row).items():
            assert value.utcoffset() == timedelta(0), f"{type(row).__name__}.{column}"
            assert abs(at - value) < timedelta(minutes=10), f"{type(row).__name__}.{column}"
    assert abs(datetime.now(UTC) - at) < timedelta(minutes=1)


def test_a_time_without_a_zone_is_refused(service: Service) -> None:
    with pytest.raises(Exception, match="has no time zone"), service.database.session_scope() as session:
        jobs.get(session, service.submit()).started_at = datetime(2024, 1, 1)  # noqa: DTZ001  # the mistake itself


def test_times_stay_utc_where_the_database_lives_in_another_zone(postgresql_url: str) -> None:
    database = Database(postgresql_url)
    service = Service(database)
    with database.session_scope() as session:
        name = session.execute(text("SELECT current_database()")).scalar_one()
        session.execute(text(f"ALTER DATABASE {name} SET timezone TO 'Asia/Kathmandu'"))
    database.dispose()

    job = service.job(service.submit())

    assert job.created_at.tzinfo is UTC
    assert abs(datetime.now(UTC) - job.created_at) < timedelta(minutes=1)
    database.dispose()
