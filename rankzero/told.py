"""Which of a job's news were told already: those of its past may come in its stream once more.

What is kept of them does not grow with the run: of what each series or output came to, little more than how far it is.
"""

from collections import defaultdict
from collections.abc import Sequence

from rankzero.models import Answer, Checkpoint, LogChunk, Metric
from rankzero.news import CheckpointNews, EventNews, LogNews, MetricNews, News
from rankzero.numbers import Numbers

MOST_CHECKPOINTS = 10_000
"""Whose last form is remembered."""


class Told:
    """The news that were told, by what each of them is known by: events by id, values by metric, attempt and step,
    output by rank, attempt and byte, checkpoints by what is in them."""

    def __init__(self) -> None:
        self._events = Numbers()
        self._offsets: dict[tuple[int, int], int] = {}
        """Of the last piece of each rank in each attempt: a rank's output comes in its order."""
        self._checkpoints: dict[int, int] = {}
        """By id, a digest of each."""
        self._steps: defaultdict[tuple[str, int], Numbers] = defaultdict(Numbers)

    def fresh(self, news: News) -> News | None:
        """Return what of the news was not told before, which it is from now on; None where that is nothing."""
        match news:
            case EventNews():
                return news if self._events.add(news.event.id) else None
            case LogNews():
                return _with(news, [piece for piece in news.items if self._is_fresh_piece(piece)])
            case MetricNews():
                return _with(news, [value for value in news.items if self._is_fresh_value(value)])
            case CheckpointNews():
                return _with(news, [each for each in news.items if self._is_fresh_checkpoint(each)])
        return news

    def _is_fresh_value(self, value: Metric) -> bool:
        return self._steps[value.name, value.attempt].add(value.step)

    def _is_fresh_piece(self, piece: LogChunk) -> bool:
        of = piece.attempt, piece.rank
        if piece.offset <= self._offsets.get(of, -1):
            return False
        self._offsets[of] = piece.offset
        return True

    def _is_fresh_checkpoint(self, checkpoint: Checkpoint) -> bool:
        digest = hash(checkpoint.model_dump_json())
        if self._checkpoints.pop(checkpoint.id, None) == digest:
            self._checkpoints[checkpoint.id] = digest
            return False
        self._checkpoints[checkpoint.id] = digest
        if len(self._checkpoints) > MOST_CHECKPOINTS:
            del self._checkpoints[next(iter(self._checkpoints))]  # of which was heard longest ago
        return True


def _with(news: News, items: Sequence[Answer]) -> News | None:
    return news.model_copy(update={"items": tuple(items)}) if items else None
