"""Jobs: submitting and finding them, and what their runs report."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from api.access import Submitter, Viewer
from api.errors import NOT_MODIFIED
from api.etags import Tags
from api.fields import SPARSE, AttemptFields, JobFields, SparseAnswer, picked
from api.keys import IdempotencyKey
from api.models import Attempts, Event, Events, Job, SubmittedJob
from api.pages import Page, read_page
from api.queries import EventQuery, JobId, JobQuery
from api.session import reading, writing
from api.submissions import answer_submission
from api.views import edited, view_attempts, with_positions
from jobs.spec import JobSpec
from jobs.store import audit, idempotency, jobs, search

router = APIRouter(prefix="/jobs", tags=["jobs"])


@router.post("", status_code=201, summary="Submit a job")
def submit_job(spec: JobSpec, response: Response, by: Submitter, key: IdempotencyKey = None) -> SubmittedJob:
    """Store a job as queued and return it; `warnings` says what its submitter should know.

    Once this has answered 201 the job is not lost, whatever dies. Where no answer came, send it again under the same
    `Idempotency-Key`.
    """
    with writing() as session:
        submission = idempotency.once(
            session, key, jobs.SUBMITTED, spec, lambda: jobs.submit(session, spec, by=by), by=by
        )
        audit.record(session, by, "submit_job", f"jobs/{submission.job.id}")
    return answer_submission(submission, response)


@router.get("", summary="List jobs", response_model=Page[Job], responses=SPARSE)
def list_jobs(query: Annotated[JobQuery, Query()], _: Viewer) -> Page[Job] | SparseAnswer:
    """Return one page of the jobs that match every filter."""
    found = search.select_jobs(
        states=query.state,
        labels=query.labels,
        name=query.name,
        user=query.user,
        priority=query.priority,
        recipe=query.recipe,
        model=query.model,
        host=query.host,
        parent_id=query.parent,
        created_after=query.created_after,
        created_before=query.created_before,
        finished_after=query.finished_after,
        sort=query.sort,
    )
    with reading() as session:
        page = read_page(session, found, query, Job, order=query.sort)
        page = page.model_copy(update={"items": with_positions(session, page.items)})
    return picked(page, query.fields)


@router.get("/{job_id}", summary="Show a job", response_model=Job, responses=SPARSE | NOT_MODIFIED)
def get_job(job_id: JobId, _: Viewer, tags: Tags, fields: JobFields = None) -> Job | SparseAnswer:
    """Return one job."""
    with reading() as session:
        (job,) = with_positions(session, [Job.model_validate(jobs.get(session, job_id))])
    return tags.shown(picked(job, fields), **edited(job))


@router.get("/{job_id}/attempts", summary="List attempts", response_model=Attempts, responses=SPARSE)
def list_attempts(job_id: JobId, _: Viewer, fields: AttemptFields = None) -> Attempts | SparseAnswer:
    """Return a job's attempts, oldest first, with the hosts and devices each was given."""
    with reading() as session:
        return picked(view_attempts(session, job_id), fields)


@router.get("/{job_id}/events", summary="List events", response_model=Events, responses=SPARSE)
def list_events(job_id: JobId, query: Annotated[EventQuery, Query()], _: Viewer) -> Events | SparseAnswer:
    """Return what happened to a job, oldest first; `after` continues where the last answer ended.

    With `sort=-id` the newest come first: then `after` of the answer follows these, and `before` asks for older ones.
    """
    newest_first = query.sort == "-id"
    found = search.select_events(
        job_id, after=query.after, before=query.before, kinds=query.kind, newest_first=newest_first
    )
    with reading() as session:
        jobs.get(session, job_id)
        rows = session.scalars(found.limit(query.limit)).all()
    last = max((row.id for row in rows), default=query.after)
    return picked(Events(items=[Event.model_validate(row) for row in rows], after=last), query.fields)
