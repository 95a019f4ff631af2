"""Metrics of a job: values by pages, few points of many for a chart, all of them as CSV, and which there are."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Response
from pydantic import TypeAdapter

from api import metric_csv
from api.access import Viewer
from api.metric_csv import CsvAnswer, Place
from api.metrics import MetricName, MetricNames, MetricQuery
from api.models import Metric
from api.pages import Page, read_page
from api.queries import JobId
from api.session import reading
from jobs.store import jobs, reports, series
from jobs.store.series import MetricRow

router = APIRouter(prefix="/jobs/{job_id}/metrics", tags=["jobs"])

_AS_CSV: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The values: a page, or all as CSV.",
        "content": {CsvAnswer.media_type: {"schema": {"type": "string"}}},
    }
}

_METRICS = TypeAdapter(list[Metric])


@router.get("", summary="List metric values", response_model=Page[Metric], responses=_AS_CSV)
def list_metrics(
    job_id: JobId,
    query: Annotated[MetricQuery, Query()],
    response: Response,
    _: Viewer,
    accept: Annotated[str | None, Header(include_in_schema=False)] = None,
) -> Page[Metric] | CsvAnswer:
    """Return one page of a job's metric values, by name and step; for each step that of the newest attempt there.

    With `points`, each series is thinned to so many values that show its course. As CSV, all values come at once.
    """
    response.headers["Vary"] = "Accept"
    if query.format == "csv" or (query.format is None and metric_csv.is_wanted(accept)):
        return CsvAnswer(lambda place: _read_after(job_id, query, place))
    if query.points is not None:
        values = _METRICS.validate_python(_read_thinned(job_id, query), from_attributes=True)
        return Page(items=values, next_page=None, previous_page=None)
    with reading() as session:
        jobs.get(session, job_id)
        found = reports.select_metrics(job_id, names=query.name, from_step=query.from_step, to_step=query.to_step)
        return read_page(session, found, query, Metric)


@router.get("/names", summary="List the metrics of a job")
def list_metric_names(job_id: JobId, _: Viewer) -> MetricNames:
    """Return which metrics a job has, with the number of their values, the first and last step, and the last value."""
    with reading() as session:
        jobs.get(session, job_id)
        return MetricNames(items=[MetricName.model_validate(each) for each in series.summaries(session, job_id)])


def _read_after(job_id: int, query: MetricQuery, place: Place | None) -> Sequence[MetricRow]:
    """The values that follow a place, or all of a thinned series at once."""
    if query.points is not None:
        return _read_thinned(job_id, query) if place is None else ()
    with reading() as session:
        jobs.get(session, job_id)
        found = series.select_piece(
            job_id, names=query.name, from_step=query.from_step, to_step=query.to_step, after=place
        )
        return session.execute(found).all()


def _read_thinned(job_id: int, query: MetricQuery) -> Sequence[MetricRow]:
    with reading() as session:
        jobs.get(session, job_id)
        names = sorted(set(query.name)) or [each.name for each in series.summaries(session, job_id)]
        points = query.check_points(len(names))
        return [
            value
            for name in names
            for value in series.thinned(
                session, job_id, name, points=points, from_step=query.from_step, to_step=query.to_step
            )
        ]
