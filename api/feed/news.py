"""News: entries of the feed as followers are handed them, with what they tell of as the API shows it elsewhere."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi.sse import format_sse_event
from pydantic import BaseModel, ConfigDict
from sqlalchemy.orm import Session

from api.models import Checkpoint, Event, LogChunk, Metric, Progress
from jobs import tables
from jobs.feed import Position, Topic
from jobs.store import feed
from jobs.tables import FeedEntry


@dataclass(frozen=True)
class News:
    """One event of a stream."""

    position: Position
    topic: Topic
    job_id: int | None
    """None where it is about no job."""
    sent: bytes
    """As it is sent, which is the same for every stream."""


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)


class Hello(_Data):
    """Where a stream begins."""

    position: str
    """All that comes after it follows. What is read of the service from now on is at least as new."""
    held_back_s: float
    """For how long the oldest news waits for a transaction of the database that is still under way, in seconds."""


class Reset(_Data):
    """What came after the position that was asked for is not kept any more."""

    position: str
    """Where the stream goes on instead: read what you show anew."""


class JobNews(_Data):
    """What happened to a job, or how far it is: one of the two."""

    job_id: int
    event: Event | None = None
    progress: Progress | None = None


class MetricNews(_Data):
    """Values that a run has measured, in the order in which it reported them."""

    job_id: int
    items: list[Metric]


class LogNews(_Data):
    """Pieces of the output of a run's ranks."""

    job_id: int
    items: list[LogChunk]


class CheckpointNews(_Data):
    """Checkpoints that were saved or have changed, as they are now."""

    job_id: int
    items: list[Checkpoint]


class HostNews(_Data):
    """What became of a host; `GET /hosts` shows how it stands."""

    host: str
    change: str
    """`registered`, `drained`, `undrained`, `removed`, or `quarantined` and `released`, which a device of it was."""


def tell(session: Session, entries: Sequence[FeedEntry]) -> list[News]:
    """Return what entries of the feed tell, in their order, without those whose rows are gone meanwhile."""
    events = {row.id: row for row in feed.rows(session, tables.JobEvent, _event_ids(entries))}
    pieces = {row.id: row for row in feed.rows(session, tables.LogChunk, _ids(entries, Topic.LOGS))}
    saved = {row.id: row for row in feed.rows(session, tables.Checkpoint, _ids(entries, Topic.CHECKPOINTS))}
    found: list[News] = []
    for entry in entries:
        topic, detail = Topic(entry.topic), entry.detail
        data: _Data | None
        if topic is Topic.HOSTS:
            data = HostNews.model_validate(detail)
        else:
            assert entry.job_id is not None, "every other topic is about a job"
            match topic:
                case Topic.METRICS:
                    data = _metrics(entry.job_id, detail)
                case Topic.LOGS:
                    chunks = [LogChunk.model_validate(pieces[each]) for each in detail["ids"] if each in pieces]
                    data = LogNews(job_id=entry.job_id, items=chunks) if chunks else None
                case Topic.CHECKPOINTS:
                    files = [Checkpoint.model_validate(saved[each]) for each in detail["ids"] if each in saved]
                    data = CheckpointNews(job_id=entry.job_id, items=files) if files else None
                case Topic.JOBS:
                    data = _job(entry.job_id, detail, events)
        if data is not None:
            place = Position(entry.xid, entry.id)
            sent = format_sse_event(event=topic, data_str=data.model_dump_json(), id=str(place))
            found.append(News(place, topic, entry.job_id, sent))
    return found


def _job(job_id: int, detail: dict[str, Any], events: dict[int, tables.JobEvent]) -> JobNews | None:
    if "progress" in detail:
        return JobNews(job_id=job_id, progress=Progress.model_validate(detail["progress"]))
    row = events.get(detail["event"])
    return None if row is None else JobNews(job_id=job_id, event=Event.model_validate(row))


def _metrics(job_id: int, detail: dict[str, Any]) -> MetricNews:
    attempt = detail["attempt"]
    items = [
        Metric(name=name, step=step, epoch=epoch, attempt=attempt, at=at, value=value, kind=kind)
        for name, step, epoch, at, value, kind in feed.values_of(detail["records"])
    ]
    return MetricNews(job_id=job_id, items=items)


def _event_ids(entries: Sequence[FeedEntry]) -> Collection[int]:
    return [entry.detail["event"] for entry in entries if entry.topic == Topic.JOBS and "event" in entry.detail]


def _ids(entries: Sequence[FeedEntry], topic: Topic) -> Collection[int]:
    return [each for entry in entries if entry.topic == topic for each in entry.detail["ids"]]
