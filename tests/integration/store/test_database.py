"""The two databases under concurrent use: nobody is refused for coming at the same time as another."""

import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import func, select, text, update
from sqlalchemy.exc import DBAPIError, OperationalError

from jobs.database import Database, get_database, lock_planning, now
from jobs.planner.view import Wait
from jobs.settings import get_settings
from jobs.states import Intent
from jobs.store import hosts, jobs, lines
from jobs.tables import Host
from tests.integration.store.conftest import Service
from tests.integration.store.turns import in_threads

NOTHING_SAID = lines.Said(None, None, None, (), None)


@pytest.fixture
def sqlite(sqlite_url: str) -> Iterator[Database]:
    database = Database(sqlite_url)
    yield database
    database.dispose()


def test_transactions_that_read_and_then_write_at_the_same_time_all_succeed(database: Database) -> None:
    rounds, writers = 25, 6
    service = Service(database)
    service.register()
    ids = [service.submit() for _ in range(writers)]
    together = threading.Barrier(writers)
    errors: list[BaseException] = []
    turns = iter(ids)

    def work() -> None:
        job_id = next(turns)
        together.wait()
        try:
            for number in range(rounds):
                with database.session_scope() as session:
                    jobs.get(session, job_id)  # a read first: the transaction that SQLite refuses to let write later
                    lines.note(session, [Wait(job_id, f"round {number}", 0.0)], {job_id: NOTHING_SAID}, at=0.0)
                with database.session_scope(read_only=True) as session:
                    hosts.devices(session)
        except BaseException as error:  # noqa: BLE001  # looked at by the test's own thread
            errors.append(error)

    in_threads(writers, work)

    assert errors == []
    assert {service.job(job_id).reason for job_id in ids} == {f"round {rounds - 1}"}


def test_a_counter_raised_by_many_at_once_loses_no_turn(database: Database) -> None:
    service = Service(database)
    service.register()
    start = service_time(database)

    def work() -> None:
        for _ in range(10):
            with database.session_scope() as session:
                host = session.scalars(select(Host).where(Host.name == "alpha").with_for_update()).one()
                host.heartbeat_at += timedelta(seconds=1)

    with database.session_scope() as session:
        session.execute(update(Host).values(heartbeat_at=start))
    in_threads(5, work)

    with database.session_scope(read_only=True) as session:
        assert session.get_one(Host, "alpha").heartbeat_at - start == timedelta(seconds=50)


def test_a_reader_is_not_kept_waiting_by_a_writer(sqlite: Database) -> None:
    service = Service(sqlite)
    service.register()
    job_id = service.submit()

    with sqlite.session_scope() as session:
        jobs.set_intent(session, job_id, Intent.CANCEL)
        assert service.state(job_id) == "queued"
    assert service.state(job_id) == "cancelled"


def test_a_read_only_transaction_sees_one_moment_throughout(sqlite: Database) -> None:
    service = Service(sqlite)
    service.register()
    job_id = service.submit()

    with sqlite.session_scope(read_only=True) as session:
        before = jobs.get(session, job_id).state
        with sqlite.session_scope() as writing:
            jobs.set_intent(writing, job_id, Intent.CANCEL)
        assert jobs.get(session, job_id).state == before == "queued"


def test_an_accepted_job_survives_a_power_cut_and_readers_do_not_block(sqlite: Database) -> None:
    with sqlite.session_scope(read_only=True) as session:
        assert session.execute(text("PRAGMA journal_mode")).scalar_one() == "wal"
        assert session.execute(text("PRAGMA synchronous")).scalar_one() == 2  # FULL
        assert session.execute(text("PRAGMA foreign_keys")).scalar_one() == 1


def test_an_error_in_a_scope_leaves_nothing_behind(database: Database) -> None:
    service = Service(database)
    service.register()
    job_id = service.submit()
    before = service.everything()

    def fail() -> None:
        with database.session_scope() as session:
            jobs.set_intent(session, job_id, Intent.CANCEL)
            raise RuntimeError("on the way out")

    with pytest.raises(RuntimeError):
        fail()

    assert service.everything() == before


def test_the_databases_clock_moves_within_a_transaction(database: Database) -> None:
    with database.session_scope() as session:
        first = now(session)
        while now(session) == first:
            pass
        assert now(session) > first


def test_a_database_file_is_made_in_a_folder_that_does_not_exist_yet(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'a' / 'b' / 'rankzero.db'}")

    with database.session_scope() as session:
        session.execute(text("SELECT 1"))

    assert (tmp_path / "a" / "b" / "rankzero.db").exists()
    database.dispose()


def test_a_postgresql_url_without_a_driver_uses_psycopg_3(postgresql_url: str) -> None:
    database = Database(postgresql_url.replace("postgresql+psycopg://", "postgresql://"))

    with database.session_scope() as session:
        assert session.get_bind().dialect.driver == "psycopg"
    database.dispose()


def test_a_postgresql_that_does_not_answer_a_lock_is_an_error_not_a_hang(postgresql_url: str) -> None:
    database = Database(postgresql_url)
    names = ["statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"]

    with database.session_scope() as session:
        limits = [session.scalar(select(func.current_setting(name))) for name in names]
        assert limits == ["30s", "10s", "10s"]
        session.execute(text("SET LOCAL statement_timeout = '50ms'"))
        with pytest.raises(OperationalError, match="statement timeout"):
            session.execute(text("SELECT pg_sleep(60)"))
        session.rollback()
    database.dispose()


def test_one_who_vanished_in_the_middle_of_a_transaction_does_not_keep_the_others_waiting(postgresql_url: str) -> None:
    vanished, others = Database(postgresql_url), Database(postgresql_url)
    connections: list[psycopg.Connection[Any]] = []

    def vanish_while_planning() -> None:
        with vanished.session_scope() as session:
            lock_planning(session)
            connection = session.connection().connection.driver_connection
            assert isinstance(connection, psycopg.Connection)
            connections.append(connection)
            session.execute(text("SET LOCAL idle_in_transaction_session_timeout = '200ms'"))
            with others.session_scope() as waiting:
                lock_planning(waiting)

    # By the server's last word, or by the end of the connection where that is noticed first.
    with pytest.raises(DBAPIError, match=r"idle-in-transaction|connection socket closed"):
        vanish_while_planning()
    connections[0].close()  # psycopg leaves one open whose end it noticed so
    for database in (vanished, others):
        database.dispose()


def test_a_process_has_one_database_as_its_settings_name_it(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKZERO_DATABASE_URL", sqlite_url)
    get_settings.cache_clear()
    get_database.cache_clear()
    try:
        assert str(get_database().url) == sqlite_url
        assert get_database() is get_database()
    finally:
        get_database().dispose()
        get_settings.cache_clear()
        get_database.cache_clear()


def service_time(database: Database) -> datetime:
    with database.session_scope(read_only=True) as session:
        return now(session)
