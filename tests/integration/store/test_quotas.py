"""Quotas and use: who holds how much, who had how much lately, and who has to wait for it."""

from datetime import timedelta

import pytest

from jobs.database import now
from jobs.errors import NotFoundError
from jobs.planner.view import Account
from jobs.settings import get_settings
from jobs.states import Outcome
from jobs.store import jobs, quotas, usage
from jobs.tables import Usage
from tests.integration.store.conftest import Service

HALF_LIFE_S = 86_400.0


def limit(service: Service, account: Account, *, devices: int | None = None, share: float = 1) -> None:
    with service.database.session_scope() as session:
        quotas.put(session, account, max_devices=devices, share=share)


def used(service: Service) -> dict[Account, float]:
    with service.database.session_scope(read_only=True) as session:
        return usage.read(session, now(session))


def test_a_user_at_the_limit_waits_and_says_for_which_quota(service: Service) -> None:
    limit(service, ("user", "ada"), devices=1)
    service.launch("0", user="ada")
    waits, other = service.submit("1", user="ada"), service.submit("1", user="bob")

    assert [placement.job_id for placement in service.plan()] == [other]
    assert "quota of user ada" in str(service.job(waits).reason)


def test_a_label_at_the_limit_waits_whoever_its_user_is(service: Service) -> None:
    limit(service, ("label", "team=vision"), devices=1)
    service.launch("0", user="ada", labels={"team": "vision"})
    waits = service.submit("1", user="bob", labels={"team": "vision"})

    assert service.plan() == []
    assert "team=vision" in str(service.job(waits).reason)


def test_setting_a_quota_again_replaces_it_and_removing_it_frees_who_waited(service: Service) -> None:
    limit(service, ("user", "*"), devices=5)
    limit(service, ("user", "*"), devices=0, share=2)
    job_id = service.submit("0")

    assert service.plan() == []
    with service.database.session_scope() as session:
        assert [(row.max_devices, row.share) for row in quotas.all_quotas(session)] == [(0, 2)]
        quotas.remove(session, ("user", "*"))

    assert [placement.job_id for placement in service.plan()] == [job_id]
    with pytest.raises(NotFoundError, match="no quota of user"), service.database.session_scope() as session:
        quotas.remove(session, ("user", "*"))


def test_what_is_held_counts_as_used_by_its_user_and_by_labels_with_a_quota(service: Service) -> None:
    limit(service, ("label", "team=a"))
    placement = service.run("0,1", user="ada", labels={"team": "a", "run": "1"})
    service.held_since(placement, seconds=100)

    with service.database.session_scope(read_only=True) as session:
        held = quotas.held_devices(session)

    assert used(service) == pytest.approx({("user", "ada"): 200, ("label", "team=a"): 200}, rel=0.05)
    assert (held["user", "ada"], held["label", "team=a"]) == (2, 2)


def test_what_was_used_stays_when_an_attempt_ends_and_halves_with_each_half_life(service: Service) -> None:
    placement = service.run("0,1", user="ada")
    service.held_since(placement, seconds=100)
    service.end(placement, Outcome.SUCCEEDED)
    at_the_end = used(service)["user", "ada"]
    with service.database.session_scope() as session:
        row = session.get_one(Usage, ("user", "ada"))
        row.at -= timedelta(seconds=get_settings().fair_share_half_life_s)

    assert at_the_end == pytest.approx(200, rel=0.05)
    assert used(service)["user", "ada"] == pytest.approx(at_the_end / 2, rel=0.01)


def test_use_of_a_later_time_is_added_to_what_is_left_of_the_earlier(service: Service) -> None:
    job_id = service.submit("0", user="ada", labels={"team": "a"})
    limit(service, ("label", "team=a"))
    with service.database.session_scope() as session:
        job, at = jobs.get(session, job_id), now(session)
        usage.add(session, job, 1000.0, at - timedelta(seconds=HALF_LIFE_S))
        usage.add(session, job, 70.0, at)
        found = usage.read(session, at)

    assert found == pytest.approx({("user", "ada"): 570, ("label", "team=a"): 570})


def test_one_long_run_counts_as_many_short_ones_in_a_row() -> None:
    parts = [usage.weighed(3600) * 0.5 ** (hour * 3600 / HALF_LIFE_S) for hour in range(48)]

    assert usage.weighed(48 * 3600) == pytest.approx(sum(parts))
    assert usage.weighed(10) == pytest.approx(10, rel=0.001)


def test_who_used_much_lately_stands_behind_who_came_later_and_used_nothing(service: Service) -> None:
    placement = service.run("0,1", user="ada")
    service.held_since(placement, seconds=1000)
    ada, bob = service.submit("0", user="ada"), service.submit("0", user="bob")
    service.plan()

    keys = [service.job(job_id).line_key for job_id in (bob, ada)]
    assert keys == sorted(keys, key=lambda key: key or 0.0)
    assert keys[0] != keys[1]
