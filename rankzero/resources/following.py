"""Following a job: what happens to it, how it stands after each change, and its end."""

import math
import time
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import TypeVar

from rankzero.connection import PAGE, parsed
from rankzero.errors import UnreachableError, UsageError, WaitTimeoutError
from rankzero.models import TERMINAL, Event, Job
from rankzero.news import CheckpointNews, EventNews, Hello, LogNews, MetricNews, News, ProgressNews, Reset
from rankzero.resources.checkpoints import Checkpoints
from rankzero.resources.jobs import Jobs
from rankzero.resources.results import Results
from rankzero.stream import Stream
from rankzero.told import Told

TOPICS = ("jobs", "metrics", "logs", "checkpoints")
"""Of what a job's news can be; `jobs` are its events and its progress."""
POLL_S = 0.5
"""Seconds between two looks at a job that waits: its place in the line is told by no event."""
PIECES = 16
"""Of output in one news of the past: each is up to 64 KiB."""

Item = TypeVar("Item")


class Following(Jobs, Results, Checkpoints):
    """The client's methods that go on until a job is over. Outages shorter than `patience_s` are waited out."""

    def stream(
        self, *, jobs: Collection[int] = (), topics: Collection[str] = (), after: str | None = None
    ) -> Iterator[News]:
        """Yield what happens from now on, or after the news whose id is `after`, without an end.

        Of these jobs, or of all, and of these topics: `jobs`, `metrics`, `logs`, `checkpoints` and `hosts`, or all.
        Hello comes first. Reset comes where the service does not keep any more what was missed.
        """
        yield from Stream(self._connection, jobs=jobs, topics=topics, after=after)

    def follow(
        self, job_id: int, *, topics: Collection[str] = ("jobs",), timeout_s: float | None = None
    ) -> Iterator[News]:
        """Yield all that has happened to a job, and then what happens, until it is over: nothing is missed and nothing
        comes twice, also where the service is away meanwhile.

        Topics are `jobs` (EventNews and, from now on, ProgressNews), `metrics` (MetricNews), `logs` (LogNews) and
        `checkpoints` (CheckpointNews, again for one that has changed). Raises WaitTimeoutError after `timeout_s`
        seconds; the job goes on then.
        """
        if unknown := sorted(set(topics) - set(TOPICS)):
            raise UsageError(f"{unknown[0]!r} is no topic of a job's news; those are {', '.join(TOPICS)}")
        told = Told()
        # Its end is an event, whatever else is wanted.
        for news in Stream(self._connection, jobs=[job_id], topics={*topics, "jobs"}, ends_at=_end(timeout_s)):
            if isinstance(news, (Hello, Reset)):
                is_over = self.get(job_id).is_over  # asked before its past is read, which has all of it then
                for past in self._past(job_id, topics, is_over=is_over):
                    if (fresh := told.fresh(past)) is not None:
                        yield fresh
                if is_over:
                    return
            elif (fresh := told.fresh(news)) is not None:
                if "jobs" in topics or not isinstance(fresh, (EventNews, ProgressNews)):
                    yield fresh
                if _is_end(fresh):
                    return
        raise _out_of_time(self._last_look(job_id), job_id, timeout_s)

    def watch(self, job_id: int, *, poll_s: float = POLL_S) -> Iterator[Job]:
        """Yield the job now and after every change, until it is over.

        A job that waits is looked at every `poll_s` seconds, since its place in the line is told by no event.
        """
        job = self.get(job_id)
        yield job
        while not job.is_over:
            for seen in self._changes(job, poll_s):
                if seen != job:
                    yield seen
                job = seen

    def wait(self, job_id: int, *, timeout_s: float | None = None) -> Job:
        """Return the job once it is over.

        Raises WaitTimeoutError after `timeout_s` seconds; the job goes on then.
        """
        for news in Stream(self._connection, jobs=[job_id], topics=["jobs"], ends_at=_end(timeout_s)):
            if isinstance(news, (Hello, Reset)) or _is_end(news):
                job = self.get(job_id)
                if job.is_over:
                    return job
        last = self._last_look(job_id)
        if last is not None and last.is_over:
            return last
        raise _out_of_time(last, job_id, timeout_s)

    def _past(self, job_id: int, topics: Collection[str], *, is_over: bool) -> Iterator[News]:
        """Yield what the service has of a job; its events last, since what a run told is stored before its end."""
        if "metrics" in topics:
            for values in _in_parts(self.metrics(job_id), PAGE):
                yield MetricNews(job_id=job_id, items=values)
        if "logs" in topics:
            for pieces in _in_parts(self.logs(job_id), PIECES):
                yield LogNews(job_id=job_id, items=pieces)
        if "checkpoints" in topics:
            for checkpoints in _in_parts(self.checkpoints(job_id), PAGE):
                yield CheckpointNews(job_id=job_id, items=checkpoints)
        if "jobs" in topics:
            events = list(self.events(job_id))
            end = None if is_over else _new_end(events)
            for event in events:
                if event is not end:
                    yield EventNews(job_id=job_id, event=event)

    def _changes(self, job: Job, poll_s: float) -> Iterator[Job]:
        """Yield how a job stands after each change, until it waits or is over; one that waits, once."""
        if job.state == "queued":
            time.sleep(poll_s)
            yield self.get(job.id)
            return
        for _ in Stream(self._connection, jobs=[job.id], topics=["jobs"]):
            # Not put together from the news: what is read now is newer than any of them.
            seen = self.get(job.id)
            yield seen
            if seen.is_over or seen.state == "queued":
                return

    def _last_look(self, job_id: int) -> Job | None:
        try:
            return parsed(Job, self._connection.get(f"/jobs/{job_id}", patience_s=0))
        except UnreachableError:
            return None


def _end(timeout_s: float | None) -> float | None:
    return None if timeout_s is None or math.isinf(timeout_s) else time.monotonic() + timeout_s


def _is_end(news: News) -> bool:
    return isinstance(news, EventNews) and news.event.to_state in TERMINAL


def _new_end(events: list[Event]) -> Event | None:
    """The end of a job that was not over when its past began to be read: the stream tells it, after all the rest."""
    changes = [event for event in events if event.to_state is not None]
    return changes[-1] if changes and changes[-1].to_state in TERMINAL else None


def _out_of_time(job: Job | None, job_id: int, timeout_s: float | None) -> WaitTimeoutError:
    state = "out of sight" if job is None else job.state
    return WaitTimeoutError(f"job {job_id} is still {state} after {timeout_s:g} s")


def _in_parts(items: Iterable[Item], size: int) -> Iterator[tuple[Item, ...]]:
    iterator = iter(items)
    while some := tuple(islice(iterator, size)):
        yield some
