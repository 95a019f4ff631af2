"""Jobs: submitting and finding them, and what their runs report."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from api.access import Submitter, Viewer
from api.errors import NOT_MODIFIED
from api.etags import Tags
from api.models import Attempts, Event, Events, Job, LogChunk, Logs, Metric, SubmittedJob
from api.pages import Page, read_page
from api.queries import EventQuery, JobId, JobQuery, LogQuery, MetricQuery
from api.session import reading, writing
from api.submissions import IdempotencyKey, answer_submission
from api.views import edited, view_attempts, with_positions
from jobs.spec import JobSpec
from jobs.store import audit, idempotency, jobs, reports

router = APIRouter(prefix="/jobs", tags=["jobs"])


@router.post("", status_code=201, summary="Submit a job")
def submit_job(spec: JobSpec, response: Response, by: Submitter, key: IdempotencyKey = None) -> SubmittedJob:
    """Store a job as queued and return it; `warnings` says what its submitter should know.

    Once this has answered 201 the job is not lost, whatever dies. Where no answer came, send it again under the same
    `Idempotency-Key`.
    """
    with writing() as session:
        submission = idempotency.once(session, key, spec, lambda: jobs.submit(session, spec, by=by), by=by)
        audit.record(session, by, "submit_job", f"jobs/{submission.job.id}")
    return answer_submission(submission, response)


@router.get("", summary="List jobs")
def list_jobs(query: Annotated[JobQuery, Query()], _: Viewer) -> Page[Job]:
    """Return one page of the jobs that match every filter."""
    found = jobs.select_jobs(
        states=query.state,
        labels=query.labels,
        name=query.name,
        user=query.user,
        parent_id=query.parent,
        sort=query.sort,
    )
    with reading() as session:
        page = read_page(session, found, query, Job, order=query.sort)
        return page.model_copy(update={"items": with_positions(session, page.items)})


@router.get("/{job_id}", summary="Show a job", responses=NOT_MODIFIED)
def get_job(job_id: JobId, _: Viewer, tags: Tags) -> Job:
    """Return one job."""
    with reading() as session:
        (job,) = with_positions(session, [Job.model_validate(jobs.get(session, job_id))])
    return tags.shown(job, **edited(job))


@router.get("/{job_id}/metrics", summary="List metric values")
def list_metrics(job_id: JobId, query: Annotated[MetricQuery, Query()], _: Viewer) -> Page[Metric]:
    """Return one page of a job's metric values, by name and step; for each step that of the newest attempt there."""
    with reading() as session:
        jobs.get(session, job_id)
        found = reports.select_metrics(job_id, names=query.name, from_step=query.from_step)
        return read_page(session, found, query, Metric)


@router.get("/{job_id}/attempts", summary="List attempts")
def list_attempts(job_id: JobId, _: Viewer) -> Attempts:
    """Return a job's attempts, oldest first, with the hosts and devices each was given."""
    with reading() as session:
        return view_attempts(session, job_id)


@router.get("/{job_id}/events", summary="List events")
def list_events(job_id: JobId, query: Annotated[EventQuery, Query()], _: Viewer) -> Events:
    """Return what happened to a job, oldest first; `after` continues where the last answer ended."""
    with reading() as session:
        jobs.get(session, job_id)
        rows = session.scalars(jobs.select_events(job_id, after=query.after).limit(query.limit)).all()
    return Events(items=[Event.model_validate(row) for row in rows], after=rows[-1].id if rows else query.after)


@router.get("/{job_id}/logs", summary="Read the output of the ranks")
def list_logs(job_id: JobId, query: Annotated[LogQuery, Query()], _: Viewer) -> Logs:
    """Return a part of what a job's ranks printed, in the order it was shipped; `after` continues."""
    found = reports.select_logs(job_id, rank=query.rank, attempt=query.attempt, after=query.after)
    with reading() as session:
        jobs.get(session, job_id)
        rows = session.scalars(found.limit(query.limit)).all()
    return Logs(items=[LogChunk.model_validate(row) for row in rows], after=rows[-1].id if rows else query.after)
