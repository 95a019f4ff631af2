"""The process's reader of the feed: it asks the database for all streams at once, and only while somebody follows."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass
from typing import TypeVar

import structlog
from anyio import CapacityLimiter, to_thread
from fastapi import FastAPI
from sqlalchemy.orm import Session

from api.feed import news
from api.feed.follower import MOST_WAITING, Follower, Wanted
from api.feed.news import News
from api.session import reading
from jobs.access import Principal
from jobs.database import AWAY
from jobs.feed import Position, Topic
from jobs.store import feed, tokens
from jobs.tables import FeedEntry

POLL_S = 0.25
"""Seconds between two looks at the feed where nothing is new; at a full batch, it goes on at once."""
BATCH = 100
"""Entries of the feed that are read at once."""
MOST_BYTES = MOST_WAITING // 2
"""Of news in them at most, about: more at once than may wait for a stream would leave all of them behind, and then each
reads the database for itself."""
OWN_BYTES = 256 * 1024
"""The same for a stream that reads for itself: it holds them until its client, who is slow, has taken them."""
PIECE_BYTES, VALUE_BYTES = 64 * 1024, 110
"""Of a piece of output at most, and of a metric value as it is sent, beside its name."""
CATCHING_UP = 4
"""Streams that read for themselves at once. They have threads of their own, so that a thousand which come back after a
restart keep no other request waiting."""
PATIENCE_S = 60.0
"""For how long a connection may take nothing of what its stream has for it."""
CHECK_S = 20.0
"""Seconds between two looks at whether the tokens of the streams count still."""

log = structlog.get_logger()
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Batch:
    """A part of the feed."""

    news: Sequence[News]
    position: Position
    """Up to where it was read."""
    is_full: bool
    """Whether there may be more."""


class FeedReader:
    """Reads the feed, and hands what is new to every follower. All of it happens on the event loop but the reading."""

    def __init__(self) -> None:
        self._followers: set[Follower] = set()
        self._starting = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._position: Position | None = None
        """Up to where the followers were handed everything; None while nobody follows."""
        self._is_closed = False
        self._own_thread = CapacityLimiter(1)
        self._threads = CapacityLimiter(CATCHING_UP)

    @property
    def followers(self) -> int:
        """How many streams there are."""
        return len(self._followers)

    @property
    def position(self) -> Position:
        """Up to where the followers were handed everything."""
        assert self._position is not None, "whoever asks follows"
        return self._position

    async def join(self, follower: Follower) -> Position:
        """Keep for a follower what comes after a position from now on, and return that. Who follows may join anew."""
        async with self._starting:
            if self._task is None:
                self._position = await self.ask(feed.head)
                # In a context of its own: what it logs is no part of the request that happened to come first.
                self._task = asyncio.create_task(self._read_on(), name="feed", context=Context())
            # Nothing is awaited from here on, so the reader cannot move on, or end, in between.
            follower.begin()
            self._followers.add(follower)
            if self._is_closed:
                follower.end()
            return self.position

    def leave(self, follower: Follower) -> None:
        """Hand a follower nothing any more."""
        self._followers.discard(follower)

    async def catch_up(self, after: Position, *, until: Position, wanted: Wanted) -> Batch:
        """Read what a stream wants of what comes after one position, up to and with another."""
        return await self.ask(lambda session: _read(session, after, until=until, wanted=wanted))

    async def ask(self, question: Callable[[Session], Answer]) -> Answer:
        """Ask the database in one of the streams' own threads."""
        return await to_thread.run_sync(_in_transaction, question, limiter=self._threads)

    def close(self, *, grace_s: float = 0.5) -> None:
        """End every stream, and after `grace_s` seconds break off the connections that do not take their ends."""
        self._is_closed = True
        for follower in self._followers:
            follower.end()
        asyncio.get_running_loop().call_later(grace_s, self._cut, lambda _follower: True)

    async def aclose(self) -> None:
        """End every stream, and return once nothing is read any more."""
        self.close(grace_s=0)
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _read_on(self) -> None:
        is_away = False
        checked_at = _clock()
        pause_s = POLL_S
        try:
            while self._followers:
                try:
                    batch = await to_thread.run_sync(self._next, limiter=self._own_thread)
                    if _clock() - checked_at >= CHECK_S:
                        checked_at = _clock()
                        await self._end_revoked()
                except AWAY as error:
                    if not is_away:
                        log.warning("feed_silent", error=str(error).splitlines()[0])
                    is_away, pause_s = True, 4 * POLL_S
                else:
                    is_away = False
                    self._hand_out(batch)
                    pause_s = 0.0 if batch.is_full else POLL_S
                self._cut(_takes_nothing)
                await asyncio.sleep(pause_s)
        except Exception:  # a defect of ours, told in the log with its traceback
            log.exception("feed_failed")
        finally:
            # After a defect the streams end too, and what comes back finds a reader that begins anew.
            for follower in self._followers:
                follower.end()
            self._task = self._position = None

    def _next(self) -> Batch:
        return _in_transaction(lambda session: _read(session, self.position))

    def _hand_out(self, batch: Batch) -> None:
        self._position = batch.position
        for follower in self._followers:
            follower.hand(batch.news)

    async def _end_revoked(self) -> None:
        """End the streams whose tokens count no more."""
        asked = {follower.principal for follower in self._followers if follower.principal.token_id is not None}
        if not asked:
            return

        def revoked(session: Session) -> set[Principal]:
            return {each for each in asked if not tokens.still_counts(session, each)}

        # In the reader's own thread: for one of the others it would wait behind all streams that read for themselves.
        gone = await to_thread.run_sync(_in_transaction, revoked, limiter=self._own_thread)
        for follower in self._followers:
            if follower.principal in gone:
                follower.end()

    def _cut(self, which: Callable[[Follower], bool]) -> None:
        for follower in list(self._followers):
            if which(follower):
                follower.cut()


def _takes_nothing(follower: Follower) -> bool:
    return follower.offered_at is not None and _clock() - follower.offered_at > PATIENCE_S


def _read(session: Session, after: Position, *, until: Position | None = None, wanted: Wanted | None = None) -> Batch:
    topics: Collection[Topic] = wanted.topics if wanted else ()
    job_ids: Collection[int] = wanted.job_ids if wanted else ()
    entries = feed.read(session, after, limit=BATCH, until=until, topics=topics, job_ids=job_ids)
    some = _light(entries, MOST_BYTES if wanted is None else OWN_BYTES)
    is_full = len(some) == BATCH or len(some) < len(entries)
    position = Position(some[-1].xid, some[-1].id) if some else after
    return Batch(news.tell(session, some), position, is_full)


def _light(entries: Sequence[FeedEntry], most_bytes: int) -> Sequence[FeedEntry]:
    """As many of the entries, and one at least, as come to about so many bytes."""
    size = 0
    for index, entry in enumerate(entries):
        if entry.topic == Topic.LOGS:
            size += len(entry.detail["ids"]) * PIECE_BYTES
        elif entry.topic == Topic.METRICS:
            size += sum(VALUE_BYTES + len(name) for *_, values in entry.detail["records"] for name in values)
        else:
            size += len(str(entry.detail))
        if size > most_bytes and index:
            return entries[:index]
    return entries


def _in_transaction(question: Callable[[Session], Answer]) -> Answer:
    with reading() as session:
        return question(session)


def _clock() -> float:
    return asyncio.get_running_loop().time()


def reader_of(app: FastAPI) -> FeedReader:
    """Return the reader of an application."""
    reader = app.state.feed
    assert isinstance(reader, FeedReader)
    return reader
