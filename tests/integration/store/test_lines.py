"""The line as it is stored: positions, reservations, and nothing written that is no news."""

from dataclasses import replace

import pytest

from jobs.planner.view import Holder, Reservation, Wait
from jobs.states import Intent
from jobs.store import jobs, lines, scenes
from jobs.store.lines import Said
from tests.integration.store.conftest import Service
from tests.integration.store.statements import written

SAID = Said("waits", 100.0, 5000.0, (Holder("alpha", "cuda:0", 1),), Reservation((1, 2), 5000.0))
"""At time 1000, for a job that is to start 4000 seconds later."""
AGAIN = Wait(7, "waits", 100.0, 5000.0, (Holder("alpha", "cuda:0", 1),), Reservation((1, 2), 5000.0))
"""The same, said by the planner."""


def positions(service: Service, *job_ids: int) -> list[int | None]:
    with service.database.session_scope(read_only=True) as session:
        found = lines.positions(session, job_ids)
    return [found.get(job_id) for job_id in job_ids]


def test_positions_follow_the_line_and_close_up(service: Service) -> None:
    service.run("0,1")
    low, first, second = service.submit("0", priority=10), service.submit("0"), service.submit("1")
    unplanned = positions(service, low, first, second)
    service.plan()
    planned = positions(service, low, first, second)
    with service.database.session_scope() as session:
        jobs.set_intent(session, first, Intent.CANCEL)

    assert unplanned == [None, None, None]
    assert planned == [3, 1, 2]
    assert positions(service, low, first, second) == [2, None, 1]


def test_what_is_set_aside_for_a_job_comes_back_as_it_was_planned(service: Service) -> None:
    running = service.run("0", time_limit_s=500)
    gang = service.submit("0,1")
    service.plan()

    with service.database.session_scope(read_only=True) as session:
        sight = scenes.read(session)
    (job,) = sight.scene.waiting

    assert job.reservation is not None
    assert len(job.reservation.device_ids) == 2
    assert job.reservation.start == pytest.approx(sight.scene.now + 500, abs=5)
    assert sight.said[gang].waits_for == (Holder("alpha", "cuda:0", running.job_id),)
    stored = service.job(gang)
    assert stored.waits_for == [{"host": "alpha", "device": "cuda:0", "job_id": running.job_id}]
    assert stored.predicted_start is not None


def test_an_end_that_draws_nearer_as_foretold_is_not_written_again(service: Service) -> None:
    service.run("0", time_limit_s=500)
    service.submit("0,1")
    service.plan()

    with written(service.database) as statements:
        service.plan()

    assert statements == []


def test_jobs_whose_limits_add_up_to_thousands_of_years_stop_no_plan(service: Service) -> None:
    far = [service.submit("0", time_limit_s=1e9, user="mallory") for _ in range(255)]
    assert [placement.job_id for placement in service.plan()] == far[:1]

    other = service.submit("1", user="ada")

    assert [placement.job_id for placement in service.plan()] == [other]
    assert service.job(far[-1]).predicted_start is None
    assert service.job(far[-1]).reason is not None


def test_a_reservation_of_another_release_is_dropped_and_its_devices_are_free(service: Service) -> None:
    service.run("0")
    job_id = service.submit("0")
    with service.database.session_scope() as session:
        jobs.get(session, job_id).reservation = {"shape": "unknown"}

    with service.database.session_scope(read_only=True) as session:
        (job,) = scenes.read(session).scene.waiting

    assert job.reservation is None


def test_a_round_writes_so_much_news_and_first_of_all_who_has_no_place_yet(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.run("0,1")
    old = [service.submit("0") for _ in range(3)]
    service.plan()
    new = service.submit("1", priority=0)
    monkeypatch.setattr(lines, "MOST_NEWS", 2)
    with service.database.session_scope() as session:
        for job_id in old:
            jobs.get(session, job_id).reason = "stale"

    service.plan()
    after_one = [service.job(job_id).reason == "stale" for job_id in old]
    service.plan()

    assert positions(service, new) == [4]
    assert after_one == [False, True, True]
    assert [service.job(job_id).reason == "stale" for job_id in old] == [False, False, False]


def test_what_is_set_aside_is_written_before_the_places_of_a_burst_of_new_jobs(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.run("0,1", preemptible=True, priority=0)
    waits = service.submit("0", priority=0)
    service.plan()
    with service.database.session_scope() as session:
        jobs.get(session, waits).priority = 50  # now the run is to be stopped for it
    burst = [service.submit("7") for _ in range(3)]
    monkeypatch.setattr(lines, "MOST_NEWS", 1)

    service.plan()

    reservation = service.job(waits).reservation
    assert reservation is not None
    assert reservation["preempts"]
    assert positions(service, *burst) == [None, None, None]


@pytest.mark.parametrize(
    "wait",
    [
        AGAIN,
        replace(AGAIN, predicted_start=5150.0),
        replace(AGAIN, reservation=Reservation((1, 2), 4850.0)),
    ],
    ids=["the same", "a start that wavers", "a reservation that wavers"],
)
def test_an_estimate_that_wavers_is_no_news(wait: Wait) -> None:
    assert not lines.is_news(wait, SAID, 1000.0)


@pytest.mark.parametrize(
    "wait",
    [
        replace(AGAIN, reason="waits longer"),
        replace(AGAIN, line_key=99.0),
        replace(AGAIN, predicted_start=5250.0),
        replace(AGAIN, predicted_start=None),
        replace(AGAIN, waits_for=()),
        replace(AGAIN, reservation=None),
        replace(AGAIN, reservation=Reservation((1, 3), 5000.0)),
        replace(AGAIN, reservation=Reservation((1, 2), 4000.0)),
        replace(AGAIN, reservation=Reservation((1, 2), 5000.0, preempts=True)),
    ],
    ids=repr,
)
def test_what_differs_is_news(wait: Wait) -> None:
    assert lines.is_news(wait, SAID, 1000.0)
