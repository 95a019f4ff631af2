"""Jobs in the store: submitted, found again, and brought to what their user wants."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import ValidationError
from sqlalchemy import select, text

from jobs.database import Database, now
from jobs.errors import InvalidSpecError, NotFoundError
from jobs.forecast import foresee
from jobs.planner.view import Wait
from jobs.spec import JobSpec
from jobs.states import Intent, Outcome, State
from jobs.store import hosts, jobs, quotas
from jobs.tables import DeviceRow, Host
from tests.integration.store.conftest import Service, times

CATALOG = {
    "recipes": [
        {"name": "classification", "models": ["mlp", "resnet18", "resnet50"], "options": "newer trainers say more"}
    ],
    "data": [{"name": "digits"}],
}


def find(service: Service, **filters: Any) -> list[int]:
    with service.database.session_scope(read_only=True) as session:
        return [job.id for job in session.scalars(jobs.select_jobs(**filters))]


def warnings(service: Service, **fields: Any) -> tuple[str, ...]:
    """What the submitter of a job on two hosts is told; it is foretold the same."""
    spec = JobSpec.model_validate({"device": "0", "nodes": 2, "train": {"model": "mlp", "data": "digits"}} | fields)
    with service.database.session_scope(read_only=True) as session:
        foretold = foresee(session, spec).warnings
    with service.database.session_scope() as session:
        told = jobs.submit(session, spec).warnings
    assert [each for each in told if each.startswith("nodes:")] == [each for each in foretold if "nodes:" in each]
    return told


def set_storages(service: Service, **by_host: list[str]) -> None:
    with service.database.session_scope() as session:
        for name, storages in by_host.items():
            session.get_one(Host, name).storages = storages


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


def test_a_job_for_devices_that_no_host_has_is_accepted_with_a_warning(service: Service) -> None:
    spec = JobSpec.model_validate({"device": "5", "train": {"model": "mlp", "data": "digits"}})

    with service.database.session_scope() as session:
        submission = jobs.submit(session, spec)

    (warning,) = submission.warnings
    assert "cuda:5" in warning
    assert service.job(submission.job.id).reason == "no registered host has cuda:5"


def test_a_job_that_a_quota_never_allows_is_accepted_with_a_warning_and_foretold_so(service: Service) -> None:
    spec = JobSpec.model_validate({"device": "0,1", "user": "ann", "train": {"model": "mlp", "data": "digits"}})

    with service.database.session_scope() as session:
        quotas.put(session, ("user", "ann"), max_devices=1, share=1.0)
        foretold = foresee(session, spec)
        submission = jobs.submit(session, spec)

    reason = "asks for 2 devices, more than the quota of user ann (1 device) allows"
    assert submission.warnings == (f"accepted, but it {reason}: the job waits until that changes",)
    assert foretold.warnings == (f"{reason}: the job would wait until that changes",)
    assert service.job(submission.job.id).reason == reason


def test_a_job_for_a_device_in_quarantine_is_accepted_with_a_warning_that_says_who_releases_it(
    service: Service,
) -> None:
    spec = JobSpec.model_validate({"device": "1", "train": {"model": "mlp", "data": "digits"}})

    with service.database.session_scope() as session:
        device = session.scalars(select(DeviceRow).where(DeviceRow.name == "cuda:1")).one()
        device.quarantined_at = now(session)
        (foretold,) = foresee(session, spec).warnings
        submission = jobs.submit(session, spec)

    reason = "cuda:1 on alpha is in quarantine (an operator releases it: rankzero hosts release)"
    assert foretold.startswith(f"{reason}: ")
    assert submission.warnings == (f"accepted, but {reason}: the job waits until that changes",)
    assert service.job(submission.job.id).reason == reason


def test_a_job_is_foretold_whom_it_would_have_stopped(service: Service) -> None:
    running = service.run("0", priority=10, preemptible=True)
    spec = JobSpec.model_validate({"device": "0", "priority": 90, "train": {"model": "mlp", "data": "digits"}})

    with service.database.session_scope(read_only=True) as session:
        decision = foresee(session, spec).decision

    assert isinstance(decision, Wait)
    assert decision.reason == f"waits for cuda:0 (job {running.job_id}, which would be stopped for it) on alpha"


def test_a_job_that_some_host_can_run_is_accepted_without_a_warning(service: Service) -> None:
    with service.database.session_scope() as session:
        spec = JobSpec.model_validate({"device": "0,1", "train": {"model": "mlp", "data": "digits"}})
        assert jobs.submit(session, spec).warnings == ()


def test_a_job_on_several_hosts_that_cannot_read_each_others_checkpoints_is_accepted_with_a_warning(
    service: Service,
) -> None:
    service.register("beta")
    (warning,) = warnings(service)
    assert "cannot read" in warning, "hosts that have not said yet what they read"

    set_storages(service, alpha=["disk-a", "share"], beta=["disk-b", "share"])
    (warning,) = warnings(service)
    assert warning.startswith("nodes: there is no checkpoint_root, and host beta cannot read what alpha saves")

    assert warnings(service, checkpoint_root="/share") == ()
    assert warnings(service, nodes=1) == ()
    assert warnings(service, device="5")[1:] == (), "no host could run it anyhow"
    set_storages(service, alpha=["share", "disk-a"], beta=["share"])
    assert warnings(service) == ()


@pytest.mark.parametrize(
    ("field", "wrong", "offer"),
    [("recipe", "clasification", "classification"), ("model", "resnet5", "resnet50"), ("data", "digit", "digits")],
)
def test_what_no_host_has_published_is_refused_with_the_nearest_name(
    service: Service, field: str, wrong: str, offer: str
) -> None:
    with service.database.session_scope() as session:
        hosts.set_catalog(session, "alpha", CATALOG)

    with pytest.raises(InvalidSpecError, match=offer) as refusal:
        service.submit(train={"model": "mlp", "data": "digits"} | {field: wrong})

    assert refusal.value.field == f"train.{field}"
    assert find(service) == []


@pytest.mark.parametrize(
    ("options", "field", "complaint"),
    [
        ({"mixp": 0.2}, "train.options.mixp", "is no option of this recipe; did you mean mixup"),
        ({"mixup": -1}, "train.options.mixup", "-1 is less than or equal to the minimum of 0"),
        ({"mixup": "much"}, "train.options.mixup", "'much' is not of type 'number'"),
        ({"mixup": 1, "scales": [1, "x"]}, "train.options.scales.1", "'x' is not of type 'integer'"),
        ({}, "train.options.mixup", "has to be given"),
    ],
)
def test_an_option_that_no_host_takes_is_refused_by_name(
    service: Service, options: dict[str, object], field: str, complaint: str
) -> None:
    properties = {
        "mixup": {"type": "number", "exclusiveMinimum": 0},
        "scales": {"type": "array", "items": {"$ref": "#/$defs/scale"}},
    }
    schema = {
        "properties": properties,
        "additionalProperties": False,
        "required": ["mixup"],
        "$defs": {"scale": {"type": "integer"}},
    }
    with service.database.session_scope() as session:
        hosts.set_catalog(session, "alpha", _with_schema(schema))

    with pytest.raises(InvalidSpecError, match=complaint) as refusal:
        service.submit(train={"model": "mlp", "data": "digits", "options": options})

    assert refusal.value.field == field
    assert find(service) == []


def test_options_that_one_of_several_hosts_takes_are_accepted(service: Service) -> None:
    service.register("beta")
    with service.database.session_scope() as session:
        hosts.set_catalog(session, "alpha", _with_schema({"properties": {}, "additionalProperties": False}))
        hosts.set_catalog(session, "beta", CATALOG)

    service.submit(train={"model": "mlp", "data": "digits", "options": {"mixup": 0.2}})


def test_a_schema_that_is_none_is_not_published(service: Service) -> None:
    with (
        pytest.raises(ValueError, match="recipe 'classification': options_schema: no JSON schema: 'numbr'"),
        service.database.session_scope() as session,
    ):
        hosts.set_catalog(session, "alpha", _with_schema({"properties": {"mixup": {"type": "numbr"}}}))


def _with_schema(schema: dict[str, object]) -> dict[str, Any]:
    return CATALOG | {"recipes": [{"name": "classification", "models": ["mlp"], "options_schema": schema}]}


def test_a_folder_needs_no_entry_in_the_catalog(service: Service) -> None:
    with service.database.session_scope() as session:
        hosts.set_catalog(session, "alpha", CATALOG)

    service.submit(train={"model": "mlp", "data": "/data/flowers"})


def test_what_one_of_several_hosts_has_published_is_accepted(service: Service) -> None:
    service.register("beta")
    with service.database.session_scope() as session:
        hosts.set_catalog(session, "alpha", CATALOG)
        hosts.set_catalog(session, "beta", CATALOG | {"data": [{"name": "cifar10"}]})

    service.submit(train={"model": "mlp", "data": "cifar10"})


def test_what_is_no_catalog_is_not_published(service: Service) -> None:
    with pytest.raises(ValidationError), service.database.session_scope() as session:
        hosts.set_catalog(session, "alpha", {"recipes": "all of them"})


def test_jobs_are_listed_newest_first(service: Service) -> None:
    ids = [service.submit() for _ in range(3)]

    assert find(service) == ids[::-1]


@pytest.mark.parametrize("sort", jobs.SORTS)
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


@pytest.mark.parametrize("root", ["foo://x/y", "simplecache::foo://x/y", "://x"])
def test_a_checkpoint_root_of_no_known_scheme_is_refused_before_anything_is_stored(service: Service, root: str) -> None:
    with pytest.raises(InvalidSpecError, match="no scheme that fsspec knows") as error:
        service.submit(checkpoint_root=root)

    assert error.value.field == "checkpoint_root"
    assert find(service) == []
    assert service.submit(checkpoint_root="simplecache::s3://bucket/runs")
