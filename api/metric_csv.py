"""Metric values as CSV: written while they are read, piece by piece, so that a series of any length takes no memory."""

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from io import StringIO

from starlette.responses import StreamingResponse

from jobs.store.series import MetricRow

COLUMNS = ("name", "step", "epoch", "attempt", "at", "value", "kind")

Place = tuple[str, int]
"""Name and step of a value."""

_WEIGHT = re.compile(r"q=([01](?:\.\d{0,3})?)", re.ASCII)


class CsvAnswer(StreamingResponse):
    """Metric values, one on a line, under a line with the names of their fields."""

    media_type = "text/csv"

    def __init__(self, read_after: Callable[[Place | None], Sequence[MetricRow]]) -> None:
        """`read_after` returns the next values, in a transaction of its own; none at the end.

        The first are read at once, so that a database that is away is answered as such.
        """
        super().__init__(_pieces(read_after(None), read_after), headers={"Vary": "Accept"})


def is_wanted(accept: str | None) -> bool:
    """Whether a header `Accept` names CSV, and JSON not before it (RFC 9110, section 12.5.1)."""
    weights: dict[str, float] = {}
    for part in (accept or "").lower().split(","):
        kind, *parameters = (each.strip() for each in part.split(";"))
        found = [weight for each in parameters if (weight := _WEIGHT.fullmatch(each))]
        weights[kind] = float(found[0][1]) if found else 1.0
    return weights.get("text/csv", 0) > weights.get("application/json", 0)


def _pieces(values: Sequence[MetricRow], read_after: Callable[[Place | None], Sequence[MetricRow]]) -> Iterator[str]:
    yield _as_csv([COLUMNS])
    while values:
        yield _as_csv([_row(each) for each in values])
        values = read_after((values[-1].name, values[-1].step))


def _row(value: MetricRow) -> tuple[object, ...]:
    at = value.at.isoformat().replace("+00:00", "Z")
    return value.name, value.step, value.epoch, value.attempt, at, value.value, value.kind


def _as_csv(rows: Sequence[Sequence[object]]) -> str:
    text = StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()
