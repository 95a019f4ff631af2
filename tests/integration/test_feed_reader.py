"""The process's reader of the feed: what it costs, and what it does with those who do not keep up."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from api import session as transactions
from api.feed import follower as followers
from api.feed import reader as readers
from api.feed import stream as streams
from api.feed.follower import Follower, Wanted
from api.feed.reader import CATCHING_UP, FeedReader
from api.feed.stream import open_stream
from jobs.access import LOCAL, Principal, Role
from jobs.database import Database, now
from jobs.store import feed
from jobs.tables import Token, User
from tests.integration.store.statements import executed

ALL = Wanted(frozenset(), frozenset())
DEADLINE_S = 30


@pytest.fixture(autouse=True)
def database(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> Database:
    """The database of this process's API."""
    database = Database(sqlite_url)
    monkeypatch.setattr(transactions, "get_database", lambda: database)
    return database


@asynccontextmanager
async def reading() -> AsyncIterator[FeedReader]:
    reader = FeedReader()
    try:
        async with asyncio.timeout(DEADLINE_S):
            yield reader
    finally:
        await reader.aclose()


def follower(*, principal: Principal = LOCAL, cut: Callable[[], None] = lambda: None) -> Follower:
    return Follower(ALL, principal, cut=cut)


def with_token(database: Database) -> Principal:
    """A user with a token that counts."""
    with database.session_scope() as session:
        at = now(session)
        session.add(User(name="alice", role=Role.VIEWER, created_at=at))
        session.flush()
        session.add(Token(id=7, user_name="alice", name="laptop", role=Role.VIEWER, digest="0" * 64, created_at=at))
    return Principal(user="alice", role=Role.VIEWER, token_id=7)


def revoke(database: Database) -> None:
    """Have the token of that user count no more."""
    with database.session_scope() as session:
        session.get_one(Token, 7).revoked_at = now(session) - timedelta(seconds=1)


def tell(database: Database, *changes: str) -> None:
    with database.session_scope() as session:
        for change in changes:
            feed.tell_host(session, "alpha", change)


def change_of(sent: bytes) -> str:
    """What an event says became of its host."""
    (line,) = [line for line in sent.decode().splitlines() if line.startswith("data: ")]
    return str(json.loads(line.removeprefix("data: "))["change"])


def statements_with(database: Database, clients: int, *, changes: int) -> int:
    """How many statements it takes to hand some changes, one after the other, to so many streams."""

    async def hand_round() -> int:
        async with reading() as reader:
            listening = [follower() for _ in range(clients)]
            for each in listening:
                await reader.join(each)
            with executed(database) as statements:
                for number in range(changes):
                    await asyncio.to_thread(tell, database, f"{number:08}")
                    for each in listening:
                        news = await each.next(timeout_s=DEADLINE_S)
                        assert news is not None
                        assert change_of(news.sent) == f"{number:08}"
            return sum(statement.startswith("SELECT feed") for statement in statements)

    return asyncio.run(hand_round())


def test_a_hundred_streams_cost_the_database_no_more_than_one(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    # How many looks there are goes by the time that it takes; one for each stream would make five hundred.
    monkeypatch.setattr(readers, "POLL_S", 0.05)
    assert statements_with(database, 100, changes=5) < 100


def test_the_database_is_not_asked_while_nobody_follows(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "POLL_S", 0.01)

    async def come_and_go() -> list[str]:
        async with reading() as reader:
            leaving = follower()
            await reader.join(leaving)
            task = reader._task
            assert task is not None
            reader.leave(leaving)
            await task
            with executed(database) as statements:
                await asyncio.sleep(0.1)  # the time of ten looks
            return statements

    assert asyncio.run(come_and_go()) == []


def test_a_stream_that_begins_before_the_reader_has_looked_again_is_told_nothing_twice(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As after a resumption at another process, whose reader has not seen yet what the client has.
    monkeypatch.setattr(readers, "POLL_S", 1.0)
    monkeypatch.setattr(streams, "HEARTBEAT_S", 0.1)

    async def begin_ahead() -> tuple[bytes, bytes, str]:
        async with reading() as reader:
            other = follower()
            await reader.join(other)
            await asyncio.sleep(0.3)  # its first look is over, and the next is not yet due
            await asyncio.to_thread(tell, database, "early")
            async with open_stream(reader, follower(), None) as events:
                hello, still_there = await anext(events), await anext(events)
                await asyncio.to_thread(tell, database, "late")
                news = await anext(events)
                while b"data: " not in news:
                    news = await anext(events)
                return hello, still_there, change_of(news)

    hello, still_there, change = asyncio.run(begin_ahead())
    assert change == "late"
    (place,) = [line for line in hello.splitlines() if line.startswith(b"id: ")]
    assert place in still_there.splitlines(), "nor does a heartbeat lead back"


def test_a_stream_that_falls_behind_reads_for_itself_and_misses_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(followers, "MOST_WAITING", 500)
    monkeypatch.setattr(streams, "HEARTBEAT_S", DEADLINE_S)
    monkeypatch.setattr(readers, "POLL_S", 0.01)
    told = [f"{number:08}" for number in range(300)]

    async def follow_slowly() -> list[str]:
        async with reading() as reader, open_stream(reader, follower(), None) as events:
            assert b"event: hello" in await anext(events)
            first = asyncio.ensure_future(anext(events))
            while reader.followers == 0:
                await asyncio.sleep(0.01)
            # As many as are read at once are far more than are kept for it.
            await asyncio.to_thread(tell, database, *told)
            return [change_of(await first), *[change_of(await anext(events)) for _ in told[1:]]]

    assert asyncio.run(follow_slowly()) == told


def test_a_stream_that_keeps_up_is_not_behind_however_much_is_reported_at_once(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "POLL_S", 0.01)
    at = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
    values = [(f"metric {number:040}", step, 1, at, 0.1, None) for step in range(500) for number in range(100)]

    async def follow() -> tuple[int, bool]:
        async with reading() as reader:
            keen = follower()
            await reader.join(keen)
            with database.session_scope() as session:
                feed.tell_metrics(session, values, job_id=1, attempt=1, at=at)
            seen = 0
            while seen < len(values) and (news := await keen.next(timeout_s=DEADLINE_S)) is not None:
                seen += news.sent.count(b'"step":')
            return seen, keen.keeps_up()

    assert asyncio.run(follow()) == (len(values), True)


def test_a_connection_that_takes_nothing_for_too_long_is_broken_off(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "POLL_S", 0.01)
    monkeypatch.setattr(readers, "PATIENCE_S", 0.1)

    async def take_nothing() -> None:
        async with reading() as reader:
            was_cut = asyncio.Event()
            deaf = follower(cut=was_cut.set)
            async with open_stream(reader, deaf, None) as events:
                await anext(events)
                await asyncio.to_thread(tell, database, "drained")
                await anext(events)
                await was_cut.wait()

    asyncio.run(take_nothing())


def test_a_stream_whose_token_is_revoked_ends(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "POLL_S", 0.01)
    monkeypatch.setattr(readers, "CHECK_S", 0.05)
    alice = with_token(database)

    async def follow() -> tuple[bool, bool]:
        async with reading() as reader:
            hers, other = follower(principal=alice), follower()
            await reader.join(hers)
            await reader.join(other)
            await asyncio.sleep(0.2)  # long enough for a look at the tokens, which finds nothing amiss
            assert hers.keeps_up()
            revoke(database)
            while hers.keeps_up():
                await asyncio.sleep(0.01)
            return hers.is_over, other.is_over

    assert asyncio.run(follow()) == (True, False)


def test_the_look_at_tokens_waits_for_no_stream_that_reads_for_itself(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "POLL_S", 0.01)
    monkeypatch.setattr(readers, "CHECK_S", 0.05)
    alice = with_token(database)
    let_go = threading.Event()

    async def follow() -> str:
        async with reading() as reader:
            hers, other = follower(principal=alice), follower()
            await reader.join(hers)
            await reader.join(other)
            catching_up = [asyncio.create_task(reader.ask(lambda _: let_go.wait())) for _ in range(CATCHING_UP)]
            try:
                while reader._threads.available_tokens:
                    await asyncio.sleep(0.01)
                revoke(database)
                while hers.keeps_up():
                    await asyncio.sleep(0.01)
                await asyncio.to_thread(tell, database, "drained")
                news = await other.next(timeout_s=DEADLINE_S)
            finally:
                let_go.set()
            await asyncio.gather(*catching_up)
            assert news is not None
            return change_of(news.sent)

    assert asyncio.run(follow()) == "drained"


def test_streams_outlive_a_database_that_is_away_for_a_while(
    database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(readers, "POLL_S", 0.01)
    away = Database(f"sqlite:///{tmp_path / 'without-tables.db'}")

    async def follow() -> str:
        async with reading() as reader:
            waiting = follower()
            await reader.join(waiting)
            with capture_logs() as logs:
                monkeypatch.setattr(transactions, "get_database", lambda: away)
                while not logs:
                    await asyncio.sleep(0.01)
                tell(database, "drained")
                monkeypatch.setattr(transactions, "get_database", lambda: database)
                news = await waiting.next(timeout_s=DEADLINE_S)
            assert [line["event"] for line in logs] == ["feed_silent"]
            assert news is not None
            return change_of(news.sent)

    assert asyncio.run(follow()) == "drained"
    away.dispose()
