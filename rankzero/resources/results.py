"""What a job's runs report: metrics and output; and what their GPUs did."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from rankzero.connection import Query
from rankzero.downloads import Source, download
from rankzero.errors import MissingPackageError
from rankzero.models import DeviceSample, LogChunk, Metric, MetricName
from rankzero.resources.resource import Resource

if TYPE_CHECKING:
    import pandas


PIECES = 100
"""Of output that are read at once: each is up to 64 KiB."""


class Results(Resource):
    """The client's methods about what runs report."""

    def metrics(
        self,
        job_id: int,
        *,
        names: Sequence[str] = (),
        from_step: int = 0,
        to_step: int | None = None,
        points: int | None = None,
    ) -> Iterator[Metric]:
        """Yield a job's metric values by name and step: for each step that of the newest attempt that reached it.

        With `points`, each metric is thinned to at most so many of its values that show its course, peaks and gaps.
        """
        query = _values(names, from_step, to_step, points)
        path = f"/jobs/{job_id}/metrics"
        if points is None:
            yield from self._connection.pages(path, Metric, query)
        else:
            yield from self._connection.items(path, Metric, query)

    def metrics_frame(
        self,
        job_id: int,
        *,
        names: Sequence[str] = (),
        from_step: int = 0,
        to_step: int | None = None,
        points: int | None = None,
    ) -> "pandas.DataFrame":
        """Return the values that `metrics` yields as a data frame with the columns name, step, epoch, attempt, at,
        value; one that is not finite is what it is.

        `frame.pivot(index="step", columns="name", values="value")` has a column for each metric. Raises
        MissingPackageError where pandas is not installed.
        """
        try:
            import pandas
        except ImportError as error:
            raise MissingPackageError("a data frame takes pandas: pip install 'rankzero[pandas]'") from error
        # As CSV all comes in one answer, which pandas reads many times faster than pages of objects.
        query = {**_values(names, from_step, to_step, points), "format": "csv"}
        content = self._connection.read(f"/jobs/{job_id}/metrics", query)
        frame = pandas.read_csv(
            BytesIO(content),
            dtype={"name": "string", "kind": "string", "value": "float64"},
            keep_default_na=False,  # `nan` is a kind, and may be the name of a metric
            na_values={"value": [""]},
        )
        for kind in ("inf", "-inf"):
            frame.loc[frame["kind"] == kind, "value"] = float(kind)
        frame["at"] = pandas.to_datetime(frame["at"], utc=True, format="ISO8601")
        return frame.drop(columns="kind")

    def metric_names(self, job_id: int) -> Sequence[MetricName]:
        """Return the metrics that a job has: how many values each, of which steps, and the last one."""
        return self._connection.items(f"/jobs/{job_id}/metrics/names", MetricName)

    def logs(
        self,
        job_id: int,
        *,
        rank: int | None = None,
        attempt: int | None = None,
        after: int = 0,
        tail: int | None = None,
        search: str | None = None,
        ignore_case: bool = False,
    ) -> Iterator[LogChunk]:
        """Yield what a job's ranks have printed after the piece with the id `after`, in the order it was shipped.

        With `tail` only the last so many lines of each rank, whatever `after` is; what comes after the last of these
        pieces follows them. With `search` only the lines that have this text in them, each by itself.
        """
        path = f"/jobs/{job_id}/logs"
        query: Query = {"rank": rank, "attempt": attempt}
        if tail is not None:
            yield from self._connection.items(path, LogChunk, {**query, "tail": tail})
        elif search is not None:
            query = {**query, "search": search, "ignore_case": True if ignore_case else None}
            yield from self._connection.tail(path, LogChunk, query, after)
        else:
            yield from self._connection.tail(path, LogChunk, query, after, limit=PIECES)

    def download_logs(
        self, job_id: int, path: str | Path, *, rank: int | None = None, attempt: int | None = None
    ) -> Path:
        """Write what a job's ranks have printed to a file, whole or not at all, and return its path.

        Each attempt and rank is under a heading of its own; of one `rank` of one `attempt` there is the output alone.
        """
        source = Source(f"/jobs/{job_id}/logs/download", {"rank": rank, "attempt": attempt}, name=f"job-{job_id}.log")
        return download(self._connection, source, Path(path))

    def job_telemetry(
        self, job_id: int, *, begin: datetime | None = None, end: datetime | None = None
    ) -> Iterator[DeviceSample]:
        """Yield what each GPU did while a job held it, by time, within these aware times."""
        yield from self._connection.pages(f"/jobs/{job_id}/telemetry", DeviceSample, {"from": begin, "to": end})


def _values(names: Sequence[str], from_step: int, to_step: int | None, points: int | None) -> Query:
    return {"name": names, "from_step": from_step, "to_step": to_step, "points": points}
