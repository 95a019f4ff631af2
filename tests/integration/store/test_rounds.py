"""Rounds of planning by several workers: as few as will do, and none that somebody waits for is left out."""

import threading
from datetime import timedelta

from sqlalchemy import select

from jobs.database import lock_planning, now
from jobs.planning import plan_once, plan_unless_planned
from jobs.settings import get_settings
from jobs.tables import AuditEvent, PlanningRound, SubmissionKey, Usage
from tests.integration.store.conftest import Service
from tests.integration.store.statements import written
from tests.integration.store.turns import wait_for_blocked
from worker.planning import Planning


def plan(service: Service, *, within_s: float = 0) -> list[int]:
    """Plan as a worker does, and return the jobs that start."""
    with service.database.session_scope() as session:
        return [launch.job_id for launch in plan_unless_planned(session, within_s=within_s)]


def test_a_worker_that_sweeps_does_not_plan_where_another_just_has(service: Service) -> None:
    first = service.submit("0")
    assert plan(service, within_s=60) == [first]
    second = service.submit("1")

    assert plan(service, within_s=60) == []
    assert plan(service) == [second]


def test_a_round_that_the_clock_says_is_yet_to_come_keeps_nobody_from_planning(service: Service) -> None:
    plan(service)
    with service.database.session_scope() as session:
        session.get_one(PlanningRound, 1).began_at += timedelta(days=1)
    job_id = service.submit("0")

    assert plan(service, within_s=60) == [job_id]


def test_the_first_round_of_an_hour_removes_old_keys_and_audit_events_and_use_that_has_faded(service: Service) -> None:
    with service.database.session_scope() as session:
        at = now(session)
        for key, age in (("old", timedelta(days=8)), ("young", timedelta(days=6))):
            session.add(SubmissionKey(key=key, digest="0" * 64, made="jobs/7", created_at=at - age))
        for subject, age in (("jobs/1", timedelta(days=366)), ("jobs/2", timedelta(days=364))):
            session.add(AuditEvent(at=at - age, action="submit_job", subject=subject, detail={}))
        half_life = timedelta(seconds=get_settings().fair_share_half_life_s)
        for user, since in (("faded", at - 41 * half_life), ("lately", at - half_life)):
            session.add(Usage(kind="user", subject=user, device_s=1e6, at=since))
        session.add(PlanningRound(id=1, began_at=at - timedelta(hours=1)))

    plan(service)

    with service.database.session_scope(read_only=True) as session:
        assert set(session.scalars(select(SubmissionKey.key))) == {"young"}
        assert set(session.scalars(select(AuditEvent.subject))) == {"jobs/2"}
        assert set(session.scalars(select(Usage.subject))) == {"lately"}


def test_a_round_that_fails_does_not_count(service: Service) -> None:
    job_id = service.submit("0")
    with service.database.session_scope() as session:
        plan_unless_planned(session)
        session.rollback()

    assert plan(service, within_s=60) == [job_id]


def test_a_worker_that_sweeps_does_not_wait_for_one_that_plans(postgres_service: Service) -> None:
    service = postgres_service
    job_id = service.submit("0")
    with service.database.session_scope() as session:
        lock_planning(session)
        assert plan(service, within_s=60) == []

    assert plan(service, within_s=60) == [job_id]


def test_those_who_wait_for_a_round_are_all_served_by_the_next(postgres_service: Service) -> None:
    service = postgres_service
    rounds: list[list[int]] = []
    waiting = [threading.Thread(target=lambda: rounds.append(plan(service))) for _ in range(4)]
    with written(service.database) as statements:
        with service.database.session_scope() as session:
            lock_planning(session)
            plan_once(session)  # it has read the queue when the job below comes
            job_id = service.submit("0")
            for thread in waiting:
                thread.start()
            wait_for_blocked(service.database, transactions=4)
        for thread in waiting:
            thread.join()

    assert sorted(rounds) == [[], [], [], [job_id]]
    assert len([each for each in statements if "planning_rounds" in each]) == 1


def test_whoever_asks_during_a_round_gets_another(service: Service) -> None:
    asked, planned = threading.Event(), threading.Event()

    class Watched(Planning):
        def plan(self, *, unless_within_s: float = 0) -> None:
            super().plan(unless_within_s=unless_within_s)
            if not asked.is_set():
                self.ask()
                self.ask()
                asked.set()
            else:
                planned.set()

    planning = Watched(service.database)
    planning.start()
    planning.ask()

    assert planned.wait(timeout=20)
    planning.stop()
    assert not planning.is_alive()
