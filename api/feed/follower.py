"""A follower: what one stream wants of the feed, and what waits for it."""

import asyncio
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass

from api.feed.news import News
from jobs.access import Principal
from jobs.feed import Topic

MOST_WAITING = 4 * 1024 * 1024
"""Bytes of news that wait for a stream at most: one that takes them more slowly reads the database itself."""


@dataclass(frozen=True)
class Wanted:
    """What a stream is to tell of."""

    topics: frozenset[Topic]
    """Empty for all."""
    job_ids: frozenset[int]
    """Empty for all."""

    def includes(self, news: News) -> bool:
        """Whether the stream tells of this. A host is no job's, so news of hosts are kept out by topics alone."""
        return (not self.topics or news.topic in self.topics) and (
            not self.job_ids or news.job_id is None or news.job_id in self.job_ids
        )


class Follower:
    """News on their way from the process's reader to one stream. It lives on the event loop, as the reader does."""

    def __init__(self, wanted: Wanted, principal: Principal, *, cut: Callable[[], None]) -> None:
        """`cut` breaks the connection off at once, whatever is still to be sent on it."""
        self.wanted = wanted
        self.principal = principal
        """Who opened it; the token may be revoked meanwhile."""
        self.cut = cut
        self.is_over = False
        """Whether the stream is to end."""
        self.is_behind = False
        """Whether news were not kept for it, since too much waited: it is to read them itself."""
        self._waiting: deque[News] = deque()
        self._size = 0
        self._stirred = asyncio.Event()
        self.offered_at: float | None = None
        """Since when, on the loop's clock, the connection has not taken what the stream has for it; None if it has."""

    def begin(self) -> None:
        """Begin to keep what is handed from now on."""
        self._waiting.clear()
        self._size = 0
        self.is_behind = False

    def hand(self, news: Collection[News]) -> None:
        """Keep what it wants of these, or nothing where too much waits already."""
        for each in news:
            if self.is_behind:
                return
            if self.wanted.includes(each):
                self._waiting.append(each)
                self._size += len(each.sent)
                self._stirred.set()
                if self._size > MOST_WAITING:
                    self._waiting.clear()
                    self._size = 0
                    self.is_behind = True

    def keeps_up(self) -> bool:
        """Whether all that it is to tell is kept for it."""
        return not self.is_behind and not self.is_over

    def end(self) -> None:
        """Have the stream end, once it has told what waits."""
        self.is_over = True
        self._stirred.set()

    async def next(self, *, timeout_s: float) -> News | None:
        """Wait for the next news and return it; None after `timeout_s`, at the end, or when it is behind."""
        if not self._waiting and self.keeps_up():
            self._stirred.clear()
            try:
                async with asyncio.timeout(timeout_s):
                    await self._stirred.wait()
            except TimeoutError:
                return None
        if not self._waiting:
            return None
        news = self._waiting.popleft()
        self._size -= len(news.sent)
        return news
