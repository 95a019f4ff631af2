"""What a worker says of its host, and that it lives, also where its sweeps take long."""

import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import select
from structlog.testing import capture_logs

from jobs.database import Database, now, upgrade
from jobs.settings import Settings
from jobs.store import feed, hosts
from jobs.tables import FeedEntry
from tests.waiting import wait_until
from worker.care import Care
from worker.clock import clock
from worker.fitness import Fitness
from worker.heartbeat import Heartbeat
from worker.planning import Planning
from worker.registration import Registration
from worker.storage import Storages
from worker.tick import Tick


@pytest.fixture
def database(postgresql_url: str) -> Iterator[Database]:
    database = Database(postgresql_url)
    yield database
    database.dispose()


def heard_at(database: Database) -> datetime:
    with database.session_scope(read_only=True) as session:
        return hosts.get(session, "alpha").heartbeat_at


def test_a_worker_says_by_which_limit_and_at_which_ports_its_host_is_to_be_used(
    database: Database, tmp_path: Path
) -> None:
    limits = {"min_free_bytes": 12_345, "rendezvous_ports": "29500-29501"}
    settings = Settings(host_name="alpha", run_root=tmp_path, **limits)  # type: ignore[arg-type]  # by their fields
    registration = Registration(database, settings, [], Storages(database, settings), Fitness(tmp_path))

    registration.keep()

    with database.session_scope(read_only=True) as session:
        host = hosts.get(session, "alpha")
    assert {name: getattr(host, name) for name in limits} == limits


def test_a_sweep_that_takes_long_does_not_put_its_host_out_of_contact_unless_it_stands_still(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(host_name="alpha", run_root=tmp_path, tick_s=0.1)
    registration = Registration(database, settings, [], Storages(database, settings), Fitness(tmp_path))
    caring, sweeping, goes_on = Care(database, settings, Fitness(tmp_path)), threading.Event(), threading.Event()

    def take_long() -> None:
        sweeping.set()
        goes_on.wait()

    monkeypatch.setattr(caring, "round", take_long)
    tick = Tick(database, settings, registration, caring, Planning(database), on_orphaned=lambda: None)
    heartbeat = Heartbeat(registration, every_s=settings.tick_s, stands_still=tick.stands_still)
    tick.start()
    heartbeat.start()
    try:
        assert sweeping.wait(10)
        before = heard_at(database)
        wait_until(lambda: heard_at(database) > before, timeout_s=10, what="a heartbeat during the sweep")
        assert not tick.stands_still()
        monkeypatch.setattr("worker.tick.clock", lambda: clock() + settings.lease_s)
        assert tick.stands_still()
    finally:
        goes_on.set()
        tick.stop()
        heartbeat.stop()


def test_a_worker_whose_sweeps_stand_still_falls_silent(database: Database, tmp_path: Path) -> None:
    settings = Settings(host_name="alpha", run_root=tmp_path)
    registration = Registration(database, settings, [], Storages(database, settings), Fitness(tmp_path))
    registration.keep()
    before = heard_at(database)
    asked = threading.Semaphore(0)

    def stands_still() -> bool:
        asked.release()
        return True

    heartbeat = Heartbeat(registration, every_s=0.01, stands_still=stands_still)
    heartbeat.start()
    try:
        for _ in range(3):
            assert asked.acquire(timeout=10)
    finally:
        heartbeat.stop()

    assert heard_at(database) == before


def test_a_worker_names_the_command_for_a_schema_that_is_missing_once_and_begins_when_it_is_there(
    empty_database_url: str, tmp_path: Path
) -> None:
    database = Database(empty_database_url)
    settings = Settings(host_name="alpha", run_root=tmp_path, tick_s=0.05)
    storages = Storages(database, settings)
    registration = Registration(database, settings, [], storages, Fitness(tmp_path))
    sweeps: list[int] = []
    keep = registration.keep

    def counted() -> None:
        sweeps.append(1)
        keep()

    registration.keep = counted  # type: ignore[method-assign]  # to see it called
    care = Care(database, settings, Fitness(tmp_path))
    tick = Tick(database, settings, registration, care, Planning(database), on_orphaned=lambda: None)
    with capture_logs() as told:
        storages.start(registration.publish_status)
        tick.start()
        try:
            wait_until(lambda: len(sweeps) >= 3, timeout_s=10, what="three sweeps")
            missing = [each for each in told if each["log_level"] in {"warning", "error"}]
            upgrade(empty_database_url)
            wait_until(lambda: registration.is_held, timeout_s=10, what="the host's registration")
        finally:
            tick.stop()
            storages.stop()
            database.dispose()

    assert [each["event"] for each in missing] == ["schema_missing"]
    assert "python -m jobs.database upgrade" in missing[0]["reason"]


def test_a_sweep_forgets_what_is_old_of_the_feed(database: Database, tmp_path: Path) -> None:
    settings = Settings(host_name="alpha", run_root=tmp_path, tick_s=0.05, feed_days=1)
    registration = Registration(database, settings, [], Storages(database, settings), Fitness(tmp_path))
    with database.session_scope() as session:
        long_ago = now(session) - timedelta(days=2)
        for change in ("drained", "undrained"):
            feed.tell_host(session, "beta", change, at=long_ago)
    tick = Tick(
        database,
        settings,
        registration,
        Care(database, settings, Fitness(tmp_path)),
        Planning(database),
        on_orphaned=lambda: None,
    )

    def told() -> list[str]:
        with database.session_scope(read_only=True) as session:
            return list(session.scalars(select(FeedEntry.detail["host"].as_string())))

    tick.start()
    try:
        wait_until(lambda: told() == ["alpha"], timeout_s=10, what="the old entries to go and the new one to stay")
    finally:
        tick.stop()
