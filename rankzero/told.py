"""Which of a job's news were told already: those of its past may come in its stream once more."""

from collections import defaultdict
from collections.abc import Sequence

from rankzero.models import Answer, Checkpoint, Metric
from rankzero.news import CheckpointNews, EventNews, LogNews, MetricNews, News


class Told:
    """The news that were told, by what each of them is known by: ids, and for values their metric, attempt and step."""

    def __init__(self) -> None:
        self._events: set[int] = set()
        self._pieces: set[int] = set()
        self._checkpoints: dict[int, Checkpoint] = {}
        self._steps: defaultdict[tuple[str, int], set[int]] = defaultdict(set)

    def fresh(self, news: News) -> News | None:
        """Return what of the news was not told before, which it is from now on; None where that is nothing."""
        match news:
            case EventNews():
                return news if _is_added(news.event.id, self._events) else None
            case LogNews():
                return _with(news, [piece for piece in news.items if _is_added(piece.id, self._pieces)])
            case MetricNews():
                return _with(news, [value for value in news.items if self._is_fresh_value(value)])
            case CheckpointNews():
                return _with(news, [each for each in news.items if self._is_fresh_checkpoint(each)])
        return news

    def _is_fresh_value(self, value: Metric) -> bool:
        return _is_added(value.step, self._steps[value.name, value.attempt])

    def _is_fresh_checkpoint(self, checkpoint: Checkpoint) -> bool:
        if self._checkpoints.get(checkpoint.id) == checkpoint:
            return False
        self._checkpoints[checkpoint.id] = checkpoint
        return True


def _is_added(number: int, numbers: set[int]) -> bool:
    if number in numbers:
        return False
    numbers.add(number)
    return True


def _with(news: News, items: Sequence[Answer]) -> News | None:
    return news.model_copy(update={"items": tuple(items)}) if items else None
