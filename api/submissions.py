"""The answer to a submission, and the wake-up that follows it."""

from fastapi import Response

from api.models import SubmittedJob
from jobs import wakeups
from jobs.store.jobs import Submission


def answer_submission(submission: Submission, response: Response) -> SubmittedJob:
    """Wake the planner for a job that has been stored and committed, and return it with its warnings."""
    wakeups.wake_planner(submission.job.id)  # after the commit: a worker that wakes up finds the job
    response.headers["Location"] = f"/jobs/{submission.job.id}"
    job = SubmittedJob.model_validate(submission.job)
    return job.model_copy(update={"warnings": list(submission.warnings)})
