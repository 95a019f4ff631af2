"""Submissions: what is accepted, with or without a warning, and what is refused before anything is stored."""

from typing import Any

import pytest
from pydantic import ValidationError
from sqlalchemy import select

from jobs.access import Principal, Role
from jobs.database import now
from jobs.errors import ForbiddenError, InvalidSpecError
from jobs.forecast import foresee
from jobs.planner.view import Wait
from jobs.spec import JobSpec
from jobs.store import hosts, jobs, quotas, search
from jobs.tables import DeviceRow, Host
from tests.integration.store.conftest import Service

CATALOG = {
    "recipes": [
        {"name": "classification", "models": ["mlp", "resnet18", "resnet50"], "options": "newer trainers say more"}
    ],
    "data": [{"name": "digits"}],
}


def stored(service: Service) -> list[int]:
    with service.database.session_scope(read_only=True) as session:
        return [job.id for job in session.scalars(search.select_jobs())]


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


def test_a_job_for_devices_that_no_host_has_is_accepted_with_a_warning(service: Service) -> None:
    spec = JobSpec.model_validate({"device": "5", "train": {"model": "mlp", "data": "digits"}})

    with service.database.session_scope() as session:
        submission = jobs.submit(session, spec)

    (warning,) = submission.warnings
    assert "cuda:5" in warning
    assert service.job(submission.job.id).reason == "no registered host has cuda:5"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"checkpoint_root": "nowhere://bucket"}, "checkpoint_root"),
        (
            {"secrets": {"HF_TOKEN": "hub"}, "train": {"recipe": "script", "options": {"module": "own"}}},
            "there is no secret hub",
        ),
        ({"user": "bob"}, "only the role admin may submit for bob"),
    ],
)
def test_what_would_not_be_accepted_is_not_planned_either(
    service: Service, fields: dict[str, Any], reason: str
) -> None:
    ada = Principal(user="ada", role=Role.SUBMITTER)
    spec = JobSpec.model_validate({"device": "0", "train": {"model": "mlp", "data": "digits"}} | fields)

    with service.database.session_scope() as session:
        with pytest.raises((InvalidSpecError, ForbiddenError), match=reason):
            jobs.submit(session, spec, by=ada)
        with pytest.raises((InvalidSpecError, ForbiddenError), match=reason):
            foresee(session, spec, by=ada)


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
    assert stored(service) == []


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
    assert stored(service) == []


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


@pytest.mark.parametrize("root", ["foo://x/y", "simplecache::foo://x/y", "://x"])
def test_a_checkpoint_root_of_no_known_scheme_is_refused_before_anything_is_stored(service: Service, root: str) -> None:
    with pytest.raises(InvalidSpecError, match="no scheme that fsspec knows") as error:
        service.submit(checkpoint_root=root)

    assert error.value.field == "checkpoint_root"
    assert stored(service) == []
    assert service.submit(checkpoint_root="simplecache::s3://bucket/runs")
