"""One stream of events: where it begins, what was missed, and then what happens, until either side ends it."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass

from fastapi.sse import format_sse_event
from sqlalchemy.orm import Session

from api.feed.follower import Follower
from api.feed.news import Hello, Reset
from api.feed.reader import FeedReader
from jobs.feed import Position
from jobs.store import feed, jobs

HEARTBEAT_S = 15.0
"""Seconds without an event after which a stream says that it lives, and how far it is: so the position of a client that
waits for something rare does not grow older than what is kept."""
RETRY_MS = 1000
"""After how long a browser that lost its stream is to come back."""


@dataclass(frozen=True)
class Opening:
    """Where a stream begins."""

    position: Position
    is_reset: bool
    """Whether that is not where the client asked it to."""
    held_back_s: float


@asynccontextmanager
async def open_stream(
    reader: FeedReader, follower: Follower, after: Position | None
) -> AsyncIterator[AsyncIterator[bytes]]:
    """Return the events of a stream as they are sent, and let go of it at the end of the block.

    Raises NotFoundError for a job that there is not.
    """
    wanted = follower.wanted
    opening = await reader.ask(lambda session: _opening(session, after, job_ids=wanted.job_ids))
    try:
        async with (
            aclosing(_events(reader, follower, opening)) as events,
            aclosing(_timed(follower, events)) as timed,
        ):
            yield timed
    finally:
        reader.leave(follower)


def _opening(session: Session, after: Position | None, *, job_ids: frozenset[int]) -> Opening:
    for job_id in sorted(job_ids):
        jobs.get(session, job_id)
    is_reset = after is not None and not feed.reaches_back_to(session, after)
    begin = feed.head(session) if after is None or is_reset else after
    return Opening(begin, is_reset, feed.held_back_s(session))


async def _timed(follower: Follower, events: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """The same events; meanwhile the follower knows for how long the connection has not taken one."""
    clock = asyncio.get_running_loop().time
    async for event in events:
        follower.offered_at = clock()
        yield event
        follower.offered_at = None


async def _events(reader: FeedReader, follower: Follower, opening: Opening) -> AsyncGenerator[bytes, None]:
    position = opening.position
    place = str(position)
    hello = Hello(position=place, held_back_s=opening.held_back_s)
    # Of a reset the id comes with that: who lost the connection in between would come back as having missed nothing.
    greeted = None if opening.is_reset else place
    yield format_sse_event(event="hello", data_str=hello.model_dump_json(), id=greeted, retry=RETRY_MS)
    if opening.is_reset:
        yield format_sse_event(event="reset", data_str=Reset(position=place).model_dump_json(), id=place)
    while not follower.is_over:
        # From here on news are kept for it, so what it reads by itself ends where those begin.
        until = await reader.join(follower)
        while position < until and not follower.is_over:
            batch = await reader.catch_up(position, until=until, wanted=follower.wanted)
            for news in batch.news:
                yield news.sent
            position = batch.position if batch.is_full else until
        while follower.keeps_up():
            if (upcoming := await follower.next(timeout_s=HEARTBEAT_S)) is not None:
                # The reader looks only so often: a stream may begin with what it has not seen yet.
                if upcoming.position > position:
                    yield upcoming.sent
                    position = upcoming.position
            elif follower.keeps_up():
                position = max(position, reader.position)  # nothing waits: all up to there was of no concern to it
                yield format_sse_event(comment="", id=str(position))
