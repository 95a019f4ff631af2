"""What hosts allow: a spec that none of them takes is refused, and one that some take waits for those."""

from typing import Any

import pytest

from jobs.errors import InvalidSpecError
from jobs.forecast import foresee
from jobs.planner.view import Wait
from jobs.roots import Roots
from jobs.spec import JobSpec
from jobs.states import Outcome
from jobs.store import hosts, jobs, roots
from jobs.tables import Host
from tests.integration.store.conftest import Service

PHOTOS = Roots(data={"photos": "/data/photos"})
PROGRAM = {"recipe": "script", "options": {"script": "/srv/train.py"}}


def publish(service: Service, **by_host: Roots) -> None:
    with service.database.session_scope() as session:
        for name, allowed in by_host.items():
            roots.publish(session, name, allowed)


def training(data: str) -> dict[str, Any]:
    return {"model": "mlp", "data": data}


def refused(service: Service, train: dict[str, Any], **fields: Any) -> InvalidSpecError:
    """The refusal of a job, which its forecast repeats."""
    spec = JobSpec.model_validate({"device": "0", "train": train} | fields)
    with service.database.session_scope() as session, pytest.raises(InvalidSpecError) as of_plan:
        foresee(session, spec)
    with service.database.session_scope() as session, pytest.raises(InvalidSpecError) as refusal:
        jobs.submit(session, spec)
    assert str(of_plan.value) == str(refusal.value)
    return refusal.value


def test_a_script_is_refused_where_no_host_runs_any_and_the_refusal_says_how_to_turn_them_on(service: Service) -> None:
    publish(service, alpha=Roots())
    refusal = refused(service, PROGRAM)
    assert refusal.field == "train.recipe"
    assert "RANKZERO_SCRIPTS=on" in refusal.message
    publish(service, alpha=Roots(scripts=True))
    service.submit(train=PROGRAM)


def test_a_script_outside_of_the_code_roots_is_refused_with_what_they_are(service: Service) -> None:
    publish(service, alpha=Roots(scripts=True, code=("/home",)))
    refusal = refused(service, PROGRAM)
    assert refusal.field == "train.options"
    assert "/home" in refusal.message
    assert "/srv/train.py" in refusal.message


def test_data_outside_of_every_root_is_refused_with_their_names(service: Service) -> None:
    publish(service, alpha=PHOTOS)
    for data in ("/etc", "photos/june", "maps:june"):
        refusal = refused(service, training(data))
        assert refusal.field == "train.data"
        assert "host alpha" in refusal.message
    for data in ("/data/photos/june", "photos", "photos:", "photos:june"):
        service.submit(train=training(data))


def test_a_host_that_the_job_names_has_to_allow_it_itself(service: Service) -> None:
    service.register("beta")
    publish(service, alpha=PHOTOS, beta=Roots(data={"maps": "/data/maps"}))
    assert "'photos'" in refused(service, training("photos:"), host="beta").message
    service.submit(train=training("photos:"), host="alpha")
    service.submit(train=training("photos:"))


def test_a_name_that_neither_trainers_nor_operators_know_is_refused_with_those_that_are(service: Service) -> None:
    with service.database.session_scope() as session:
        known = {"recipes": [{"name": "classification", "models": ["mlp"]}], "data": [{"name": "digits"}]}
        hosts.set_catalog(session, "alpha", known)
    publish(service, alpha=PHOTOS)
    assert "photos" in refused(service, training("photo")).message
    assert service.job(service.submit(train=training("digits"))).needs is None
    assert service.job(service.submit(train=training("photos"))).needs is not None


def test_a_job_runs_on_a_host_that_allows_it_and_waits_for_that_while_others_are_free(service: Service) -> None:
    service.register("beta")
    publish(service, alpha=Roots(), beta=PHOTOS)
    first = service.launch(train=training("photos:"))
    assert first.host_name == "beta"
    second = service.submit(train=training("photos:"))
    assert [each.job_id for each in service.plan()] == []
    assert "its data photos: is allowed on beta only" in str(service.job(second).reason)
    spec = JobSpec.model_validate({"device": "0", "train": training("photos:")})
    with service.database.session_scope(read_only=True) as session:
        decision = foresee(session, spec).decision
    assert isinstance(decision, Wait)
    assert "beta only" in decision.reason
    service.claim(first)
    service.end(first, Outcome.CANCELLED)
    assert [each.host_name for each in service.plan()] == ["beta"]


def test_roots_that_a_newer_release_has_published_keep_no_job_from_being_submitted(service: Service) -> None:
    with service.database.session_scope() as session:
        session.get_one(Host, "alpha").roots = {"data": ["unheard of"]}
    service.submit(train=PROGRAM)
