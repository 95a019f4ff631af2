"""What GPUs did, by host and by job, on the time axis of the jobs' metrics."""

from typing import Annotated

from fastapi import APIRouter, Path, Query

from api.access import Viewer
from api.models import DeviceSample
from api.pages import Page, read_page
from api.queries import JobId, TelemetryQuery, Text
from api.session import reading
from jobs.settings import get_settings
from jobs.store import hosts, jobs, telemetry

router = APIRouter(tags=["telemetry"])


@router.get("/hosts/{name}/telemetry", summary="Show what a host's GPUs did")
def list_host_telemetry(
    name: Annotated[Text, Path(description="Name of the host.")], query: Annotated[TelemetryQuery, Query()], _: Viewer
) -> Page[DeviceSample]:
    """Return one page of what each GPU of a host did, by time."""
    with reading() as session:
        hosts.get(session, name)
        found = telemetry.select_host(name, begin=query.begin, end=query.end)
        return read_page(session, found, query, DeviceSample)


@router.get("/jobs/{job_id}/telemetry", summary="Show what a job's GPUs did")
def list_job_telemetry(job_id: JobId, query: Annotated[TelemetryQuery, Query()], _: Viewer) -> Page[DeviceSample]:
    """Return one page of what each GPU did while a job held it, over all its attempts, by time.

    The first and the last figures of an attempt may also be of whoever had the GPU before or after it.
    """
    stretch_s = get_settings().telemetry_bucket_s
    with reading() as session:
        jobs.get(session, job_id)
        found = telemetry.select_job(session, job_id, stretch_s=stretch_s, begin=query.begin, end=query.end)
        return read_page(session, found, query, DeviceSample)
