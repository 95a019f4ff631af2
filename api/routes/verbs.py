"""What a user may do with a job that is there: cancel, pause, resume, retry, change, clone."""

from fastapi import APIRouter, Response

from api.access import Submitter
from api.errors import CONFLICT, EDITED_SINCE
from api.etags import IfMatch
from api.keys import IdempotencyKey
from api.models import Job, SubmittedJob
from api.queries import JobId
from api.session import writing
from api.submissions import answer_submission
from api.views import edited
from jobs import wakeups
from jobs.changes import Clone, JobChanges, Place
from jobs.states import Intent
from jobs.store import audit, idempotency, jobs, verbs
from jobs.store.verbs import NO_OTHER_PLACE

router = APIRouter(prefix="/jobs/{job_id}", tags=["jobs"])


@router.post("/cancel", summary="Cancel a job")
def cancel_job(job_id: JobId, by: Submitter) -> Job:
    """Ask for the end of a job and return it; a running one ends within seconds. Once cancelled, or over, it stays so.

    A job that is over already is returned as it is: cancelling twice is no error.
    """
    with writing() as session:
        audit.act_on_job(session, by, "cancel_job", job_id)
        job = jobs.set_intent(session, job_id, Intent.CANCEL)
    wakeups.wake_planner(job_id)  # its end frees devices, or its place in the line
    return Job.model_validate(job)


@router.post("/pause", summary="Pause a job", responses=CONFLICT)
def pause_job(job_id: JobId, by: Submitter) -> Job:
    """Ask a job to stop with a checkpoint and to free its devices, until it is resumed; a waiting one leaves the line.

    One that is paused already is returned as it is.
    """
    with writing() as session:
        audit.act_on_job(session, by, "pause_job", job_id)
        job = verbs.pause(session, job_id)
    wakeups.wake_planner(job_id)  # its place in the line is free
    return Job.model_validate(job)


@router.post("/resume", summary="Resume a paused job", responses=CONFLICT)
def resume_job(job_id: JobId, by: Submitter, place: Place = NO_OTHER_PLACE) -> Job:
    """Queue a paused job again, to go on from its last checkpoint; with a body, on other devices or hosts.

    One that was told to pause and has not stopped yet goes on, or is queued as soon as it has. One that was not paused
    is returned as it is.
    """
    with writing() as session:
        audit.act_on_job(session, by, "resume_job", job_id, **place.changes)
        job = verbs.resume(session, job_id, place)
    wakeups.wake_planner(job_id)
    return Job.model_validate(job)


@router.post("/retry", summary="Retry a failed job", responses=CONFLICT)
def retry_job(job_id: JobId, by: Submitter) -> Job:
    """Queue a failed job again with all of its retries, to go on from its last checkpoint."""
    with writing() as session:
        audit.act_on_job(session, by, "retry_job", job_id)
        job = verbs.retry(session, job_id)
    wakeups.wake_planner(job_id)
    return Job.model_validate(job)


@router.patch("", summary="Change a job's priority or labels", responses=EDITED_SINCE)
def change_job(job_id: JobId, changes: JobChanges, by: Submitter, expected: IfMatch) -> Job:
    """Change a job in any state; a waiting one has its new place in the line by the next plan."""
    with writing() as session:
        audit.act_on_job(session, by, "change_job", job_id, **changes.model_dump(exclude_unset=True))
        expected.check(f"job {job_id}", **edited(verbs.hold(session, job_id)))
        job = verbs.change(session, job_id, changes)
    wakeups.wake_planner(job_id)
    return expected.changed(Job.model_validate(job), **edited(job))


@router.post("/clone", status_code=201, summary="Submit a job like this one")
def clone_job(
    job_id: JobId, clone: Clone, response: Response, by: Submitter, key: IdempotencyKey = None
) -> SubmittedJob:
    """Store a new job with the spec of this one and the changes, as `POST /jobs` does; `parent_id` names this one."""
    with writing() as session:
        audit.act_on_job(session, by, "clone_job", job_id)
        submission = idempotency.once(
            session, key, jobs.SUBMITTED, clone, lambda: verbs.clone(session, job_id, clone, by=by), by=by, of=job_id
        )
    return answer_submission(submission, response)
