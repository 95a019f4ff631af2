"""The feed: what is told with each change, and that readers who come and go get all of it, once and in order."""

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import insert, select, text, update
from sqlalchemy.orm import Session

from jobs.database import Database, now
from jobs.feed import START, Position, Topic
from jobs.states import Intent
from jobs.store import attempts, copies, feed, jobs, maintenance, reports
from jobs.store.reports import CheckpointFile, LogPiece, MetricPoint
from jobs.store.transitions import record
from jobs.tables import FeedEntry, Job, JobEvent
from tests.integration.store.conftest import Service

AT = datetime(2024, 5, 1, 12, 30, tzinfo=UTC)
EVERYTHING = 10_000
DAY = timedelta(days=1)


def read(database: Database, after: Position = START, **limits: Any) -> list[FeedEntry]:
    with database.session_scope(read_only=True) as session:
        return list(feed.read(session, after, **{"limit": EVERYTHING} | limits))


def place(entry: FeedEntry) -> Position:
    return Position(entry.xid, entry.id)


def head(database: Database) -> Position:
    with database.session_scope(read_only=True) as session:
        return feed.head(session)


def news(database: Database, write: Callable[[Session], object]) -> list[tuple[str, int | None, dict[str, Any]]]:
    """What one transaction tells."""
    before = head(database)
    with database.session_scope() as session:
        write(session)
    return [(entry.topic, entry.job_id, entry.detail) for entry in read(database, before)]


def tell(session: Session, number: int, *, job_id: int = 1) -> None:
    feed.tell(session, Topic.JOBS, {"event": number}, job_id=job_id, at=now(session))


def numbers(entries: Sequence[FeedEntry]) -> list[int]:
    return [entry.detail["event"] for entry in entries]


@contextmanager
def open_transaction(database: Database, *, rolled_back: bool = False) -> Iterator[Session]:
    """A transaction that is under way meanwhile."""
    session = Session(database.engine)
    try:
        yield session
        session.rollback() if rolled_back else session.commit()
    finally:
        session.close()


@pytest.fixture
def on_postgres(postgres_service: Service) -> Database:
    return postgres_service.database


def test_every_event_of_a_job_is_told(service: Service) -> None:
    job_id = service.submit()
    told = news(service.database, lambda session: jobs.set_intent(session, job_id, Intent.CANCEL))

    events = service.events(job_id)
    assert [event.kind for event in events] == ["submitted", "intent", "state"]
    assert told == [("jobs", job_id, {"event": event.id}) for event in events[1:]]


def test_progress_is_told_as_it_came_to_be(service: Service) -> None:
    placement = service.run()
    attempt = placement.job_id
    first = news(service.database, lambda session: attempts.set_progress(session, placement, {"values": {"a": 1.0}}))
    then = news(service.database, lambda session: attempts.set_progress(session, placement, {"step": 2}))

    assert first == [("jobs", attempt, {"progress": {"values": {"a": 1.0}}})]
    assert then == [("jobs", attempt, {"progress": {"step": 2, "values": {"a": 1.0}}})]


def test_metric_values_are_told_in_the_order_in_which_they_were_measured(service: Service) -> None:
    placement = service.run()
    points = [MetricPoint("loss", 2, 1, AT, 1.0), MetricPoint("accuracy", 2, 1, AT, 0.25)]
    points += [MetricPoint("loss", 1, 1, AT, 0.5), MetricPoint("loss", 3, 1, AT, None, "nan")]

    told = news(service.database, lambda session: reports.add_metrics(session, placement, points))

    at = "2024-05-01T12:30:00+00:00"
    records = [[2, 1, at, {"loss": 1.0, "accuracy": 0.25}], [1, 1, at, {"loss": 0.5}], [3, 1, at, {"loss": "nan"}]]
    assert told == [("metrics", placement.job_id, {"attempt": 1, "records": records})]
    assert list(feed.values_of(records)) == points


def test_many_metric_values_are_told_in_parts(service: Service) -> None:
    placement = service.run()
    points = [MetricPoint("loss", step, 1, AT, 0.5, None) for step in range(feed.VALUES + 1)]

    told = news(service.database, lambda session: reports.add_metrics(session, placement, points))

    assert [len(detail["records"]) for _, _, detail in told] == [feed.VALUES, 1]


def test_pieces_of_output_are_told_by_their_ids(service: Service) -> None:
    placement = service.run()
    pieces = [LogPiece(0, 0, "one\n"), LogPiece(1, 0, "two\n")]

    told = news(service.database, lambda session: reports.add_logs(session, placement, pieces))

    with service.database.session_scope(read_only=True) as session:
        ids = [row.id for row in session.scalars(reports.select_logs(placement.job_id))]
    assert told == [("logs", placement.job_id, {"ids": ids})]


def test_a_checkpoint_is_told_with_those_that_it_changes(service: Service) -> None:
    placement = service.run()

    def save(step: int, *removed: str) -> list[int]:
        file = CheckpointFile(f"/runs/{step}.pt", step, 1, f"{step:064}", 1, True, {}, AT, removed)
        told = news(service.database, lambda session: reports.add_checkpoint(session, placement, file))
        assert {topic for topic, _, _ in told} == {"checkpoints"}
        return [each for _, _, detail in told for each in detail["ids"]]

    (first,) = save(1)
    assert save(2) == [first, first + 1], "the first is the best no more"
    assert save(3, "/runs/1.pt") == [first, first + 1, first + 2]


def test_a_copy_and_a_removal_of_a_checkpoint_are_told_once(service: Service) -> None:
    placement = service.run()
    file = CheckpointFile("/runs/1.pt", 1, 1, "1" * 64, 1, False, {}, AT)
    with service.database.session_scope() as session:
        reports.add_checkpoint(session, placement, file)
    with service.database.session_scope(read_only=True) as session:
        (row,) = session.scalars(reports.select_checkpoints(placement.job_id))
    expected = [("checkpoints", placement.job_id, {"ids": [row.id]})]

    copied = news(service.database, lambda session: copies.set_copied(session, placement, row, url="/c", storage="s"))
    removed = [
        news(service.database, lambda session: reports.set_removed(session, placement, row.path)) for _ in range(2)
    ]

    assert copied == expected
    assert removed == [expected, []]


def test_what_becomes_of_a_host_is_told(service: Service) -> None:
    def change(act: Callable[[Session], object]) -> list[str]:
        told = news(service.database, act)
        assert {(topic, job_id, detail["host"]) for topic, job_id, detail in told} <= {("hosts", None, "alpha")}
        return [detail["change"] for _, _, detail in told]

    assert [entry.detail for entry in read(service.database)] == [{"host": "alpha", "change": "registered"}]
    assert change(lambda session: maintenance.drain(session, "alpha")) == ["drained"]
    assert change(lambda session: maintenance.take_back(session, "alpha")) == ["undrained"]
    assert change(lambda session: maintenance.take_back(session, "alpha")) == [], "it is not drained"
    assert change(lambda session: maintenance.release(session, "alpha", "cuda:0")) == ["released"]
    service.fall_silent("alpha")
    assert change(lambda session: maintenance.remove(session, "alpha")) == ["removed"]


def test_only_the_topics_and_jobs_that_are_asked_for_are_read(database: Database) -> None:
    with database.session_scope() as session:
        for job_id in (7, 8):
            tell(session, job_id, job_id=job_id)
            feed.tell_rows(session, Topic.LOGS, [1], job_id=job_id, at=AT)
        feed.tell_host(session, "alpha", "drained")

    def found(**limits: Any) -> list[tuple[str, int | None]]:
        return [(entry.topic, entry.job_id) for entry in read(database, **limits)]

    assert found(topics=[Topic.JOBS]) == [("jobs", 7), ("jobs", 8)]
    assert found(job_ids=[8]) == [("jobs", 8), ("logs", 8), ("hosts", None)]
    assert found(topics=[Topic.LOGS, Topic.HOSTS], job_ids=[7, 8]) == [("logs", 7), ("logs", 8), ("hosts", None)]
    assert found(topics=[Topic.LOGS], job_ids=[7]) == [("logs", 7)]


def test_a_part_that_is_read_ends_where_it_is_to(database: Database) -> None:
    with database.session_scope() as session:
        for number in range(5):
            tell(session, number)
    places = [place(entry) for entry in read(database)]

    assert numbers(read(database, places[0], until=places[3])) == [1, 2, 3]
    assert numbers(read(database, places[0], limit=2)) == [1, 2]
    assert head(database) == places[-1]


def test_an_entry_waits_for_transactions_that_may_still_write_before_it(on_postgres: Database) -> None:
    before = head(on_postgres)
    with open_transaction(on_postgres) as early:
        tell(early, 1)
        with on_postgres.session_scope() as late:
            tell(late, 2)
        assert read(on_postgres, before) == [], "what comes before it is not there yet"
        assert head(on_postgres) == before
        with on_postgres.session_scope(read_only=True) as session:
            assert feed.held_back_s(session) > 0

    assert numbers(read(on_postgres, before)) == [1, 2]
    with on_postgres.session_scope(read_only=True) as session:
        assert feed.held_back_s(session) == 0


def test_a_transaction_that_is_rolled_back_holds_nothing_back_for_good(on_postgres: Database) -> None:
    before = head(on_postgres)
    with open_transaction(on_postgres, rolled_back=True) as early:
        tell(early, 1)
        with on_postgres.session_scope() as late:
            tell(late, 2)

    assert numbers(read(on_postgres, before)) == [2]


def test_a_transaction_in_another_database_of_the_server_holds_back_as_well(on_postgres: Database) -> None:
    # Documented, since it surprises: PostgreSQL counts transactions for all its databases together.
    before = head(on_postgres)
    elsewhere = Database(on_postgres.url.set(database="postgres").render_as_string(hide_password=False))
    with open_transaction(elsewhere) as other:
        other.execute(text("SELECT pg_current_xact_id()"))
        with on_postgres.session_scope() as session:
            tell(session, 1)
        assert read(on_postgres, before) == []
    elsewhere.dispose()

    assert numbers(read(on_postgres, before)) == [1]


def test_one_that_waited_for_a_jobs_row_tells_of_it_after_the_one_that_had_it(postgres_service: Service) -> None:
    database = postgres_service.database
    job_id, other_id = postgres_service.submit(), postgres_service.submit()
    before = head(database)

    def write(session: Session, kind: str) -> None:
        session.execute(select(Job.id).where(Job.id == job_id).with_for_update())
        record(session, job_id, kind, attempt=0, at=now(session), detail={})

    with open_transaction(database) as waiting:
        # Its number is the lowest of the three, and drawn before it waits.
        waiting.execute(update(Job).where(Job.id == other_id).values(priority=1))
        with open_transaction(database, rolled_back=True) as between:
            between.execute(text("SELECT pg_current_xact_id()"))
            with database.session_scope() as first:
                write(first, "first")
            write(waiting, "second")
            waiting.commit()
            seen = read(database, before)
    seen += read(database, place(seen[-1]) if seen else before)

    with database.session_scope(read_only=True) as session:
        kinds = [session.get_one(JobEvent, number).kind for number in numbers(seen)]
    assert kinds == ["first", "second"]


@pytest.mark.timeout(300)
def test_readers_that_resume_anywhere_get_all_that_was_committed_once_and_in_order(service: Service) -> None:
    """Writers commit at once, late or not at all, each for a job of its own and all for one; readers come and go."""
    database, seed = service.database, 2026
    shared_id = service.submit()
    before = head(database)
    committed: dict[int, list[int]] = {}
    is_over = threading.Event()

    def write(writer: int) -> None:
        chance = random.Random(seed + writer)
        kept = committed.setdefault(writer, [])
        for number in range(25):
            is_kept = chance.random() < 0.7
            session = Session(database.engine)
            tell(session, number, job_id=-writer)
            threading.Event().wait(chance.choice([0, 0, 0.002, 0.02]))
            session.execute(select(Job.id).where(Job.id == shared_id).with_for_update())
            record(session, shared_id, "note", attempt=0, at=now(session), detail={})
            tell(session, number, job_id=-writer)
            session.commit() if is_kept else session.rollback()
            session.close()
            kept += [number, number] if is_kept else []

    def follow(reader: int) -> list[FeedEntry]:
        chance = random.Random(seed - reader)
        found: list[FeedEntry] = []
        while True:
            was_over = is_over.is_set()
            some = read(database, place(found[-1]) if found else before, limit=chance.randint(1, 20))
            found += some
            if not some and was_over:
                return found

    with ThreadPoolExecutor(8) as pool:
        readers = [pool.submit(follow, number) for number in range(3)]
        writers = [pool.submit(write, number) for number in range(1, 5)]
        try:
            for each in writers:
                each.result()
        finally:
            is_over.set()
        everything = [reader.result() for reader in readers]

    by_place = [[place(entry) for entry in found] for found in everything]
    assert by_place[0] == by_place[1] == by_place[2]
    assert len(set(by_place[0])) == len(by_place[0])
    for writer, kept in committed.items():
        assert numbers([entry for entry in everything[0] if entry.job_id == -writer]) == kept
    shared = numbers([entry for entry in everything[0] if entry.job_id == shared_id])
    assert shared == sorted(shared)
    assert len(shared) == sum(map(len, committed.values())) / 2
    for index in random.Random(seed).sample(range(len(by_place[0])), 20):
        rest = [place(entry) for entry in read(database, by_place[0][index])]
        assert rest == by_place[0][index + 1 :]


def age(database: Database, *, up_to: Position) -> None:
    """Let two days pass since the entries up to a position."""
    with database.session_scope() as session:
        old = (FeedEntry.xid <= up_to.xid, FeedEntry.id <= up_to.id)
        session.execute(update(FeedEntry).where(*old).values(at=now(session) - 2 * DAY))


def forget(database: Database) -> int:
    with database.session_scope() as session:
        return feed.forget(session, older_than=DAY)


def reaches_back_to(database: Database, position: Position) -> bool:
    with database.session_scope(read_only=True) as session:
        return feed.reaches_back_to(session, position)


@pytest.fixture
def told(database: Database) -> list[Position]:
    """The places of ten entries."""
    for number in range(10):
        with database.session_scope() as session:
            tell(session, number)
    return [place(entry) for entry in read(database)]


def test_what_is_old_is_forgotten_and_known_to_be(database: Database, told: list[Position]) -> None:
    assert reaches_back_to(database, START)
    age(database, up_to=told[5])

    assert forget(database) == 6

    assert [place(entry) for entry in read(database)] == told[6:]
    assert [reaches_back_to(database, each) for each in told] == [False] * 6 + [True] * 4
    assert not reaches_back_to(database, START)
    assert forget(database) == 0


def test_an_old_entry_after_a_young_one_is_kept_with_it(database: Database, told: list[Position]) -> None:
    # Whoever goes on from the young one must find it.
    with database.session_scope() as session:
        session.execute(update(FeedEntry).where(FeedEntry.id == told[5].id).values(at=now(session) - 2 * DAY))

    assert forget(database) == 0


def test_the_last_entry_is_kept_so_that_no_position_is_given_twice(database: Database, told: list[Position]) -> None:
    age(database, up_to=told[-1])

    assert forget(database) == 9

    with database.session_scope() as session:
        tell(session, 10)
    assert numbers(read(database, told[-1])) == [10]


def test_positions_that_were_never_given_are_known_to_be_none(database: Database, told: list[Position]) -> None:
    xid, number = told[-1]
    assert not reaches_back_to(database, Position(xid, number + 1))
    assert not reaches_back_to(database, Position(xid + 1, number))
    assert not reaches_back_to(database, Position(2**63 - 1, 2**63 - 1))


def test_entries_that_a_backup_brought_from_another_server_are_not_read_and_go(on_postgres: Database) -> None:
    with on_postgres.session_scope() as session:
        foreign = {"xid": 2**50, "at": now(session), "topic": "jobs", "job_id": 1, "detail": {"event": 1}}
        session.execute(insert(FeedEntry).values(foreign))
    before = head(on_postgres)
    assert not reaches_back_to(on_postgres, Position(2**50, 1))
    with on_postgres.session_scope() as session:
        tell(session, 2)

    assert numbers(read(on_postgres, before)) == [2]
    assert forget(on_postgres) == 1
