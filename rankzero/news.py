"""News: what the service's stream of events tells, as the client yields it. Fields of a newer service are kept."""

from typing import Any

from rankzero.connection import parsed
from rankzero.models import Answer, Checkpoint, Event, LogChunk, Metric, Progress


class News(Answer):
    """Something that happened."""

    id: str | None = None
    """Its place in the stream; None for what was read from a job's past."""


class EventNews(News):
    """An event of a job: a change of its state, a retry, an epoch that is over, …"""

    job_id: int
    event: Event


class ProgressNews(News):
    """How far a job is."""

    job_id: int
    progress: Progress


class MetricNews(News):
    """Values that a run has measured."""

    job_id: int
    items: tuple[Metric, ...]


class LogNews(News):
    """Pieces of the output of a run's ranks."""

    job_id: int
    items: tuple[LogChunk, ...]


class CheckpointNews(News):
    """Checkpoints that were saved, or that have changed: as they are now."""

    job_id: int
    items: tuple[Checkpoint, ...]


class HostNews(News):
    """What became of a host; `Client.hosts` shows how it stands."""

    host: str
    change: str
    """`registered`, `drained`, `undrained`, `removed`, or `quarantined` and `released`, which a device of it was."""


class Hello(News):
    """The stream has begun: what is read from now on by other ways is at least as new as its first news."""

    position: str


class Reset(News):
    """What came after the last news is not kept any more: read what you show anew; the stream goes on from here."""

    position: str


_MODELS: dict[str, type[News]] = {
    "hello": Hello,
    "reset": Reset,
    "metrics": MetricNews,
    "logs": LogNews,
    "checkpoints": CheckpointNews,
    "hosts": HostNews,
}


def news_of(kind: str, content: Any, *, place: str) -> News | None:
    """Return an event of the stream; None for one that only a newer client knows."""
    model = _MODELS.get(kind)
    if kind == "jobs":
        model, other = (ProgressNews, "event") if content.get("event") is None else (EventNews, "progress")
        content = {name: value for name, value in content.items() if name != other}
    return None if model is None else parsed(model, content | {"id": place})
