"""The user's verbs on a job that is there: pause, resume, retry, change, clone. Each is one transaction.

A verb that the job's state does not allow raises StateConflictError; one that asks for what is so already changes
nothing. All of them raise NotFoundError where there is no such job.
"""

from typing import Any

from pydantic import ValidationError
from sqlalchemy import update
from sqlalchemy.orm import Session

from jobs.access import LOCAL, Principal
from jobs.changes import Clone, JobChanges, Place
from jobs.database import now
from jobs.errors import InvalidChangesError, InvalidSpecError, StateConflictError
from jobs.merge_patch import merged
from jobs.spec import MOST_LABELS, JobSpec
from jobs.states import Intent, State
from jobs.store.jobs import Submission, get, set_intent, submit
from jobs.store.transitions import changed, move, record
from jobs.tables import Job
from trainer.errors import Cause

NO_OTHER_PLACE = Place()


def pause(session: Session, job_id: int) -> Job:
    """Have a job stop with a checkpoint, its devices freed, until it is resumed. A waiting one is paused at once."""
    return _intend(session, job_id, Intent.PAUSE)


def resume(session: Session, job_id: int, place: Place = NO_OTHER_PLACE) -> Job:
    """Have a paused job run again, in another `place` if need be: it has its place in the line from now on.

    One that has not stopped yet goes on, or is queued again as soon as it has; it cannot go elsewhere. Raises
    InvalidChangesError where the training does not fit the new place.
    """
    if place.changes:
        _move_to(session, hold(session, job_id), place)
    return _intend(session, job_id, Intent.RUN)


def retry(session: Session, job_id: int) -> Job:
    """Queue a failed job again, with all of its retries: it goes on from its last checkpoint."""
    job = hold(session, job_id)
    if job.state != State.FAILED or job.intent == Intent.CANCEL:
        raise StateConflictError(f"job {job_id} {_STANDING[_standing(job)]}")
    if (job.failure or {}).get("cause") == Cause.TIME_LIMIT:
        raise StateConflictError(
            f"job {job_id} has spent its time limit, which all of its attempts share; clone it with another "
            'time_limit_s, and "start_from": {"mode": "resume"} to go on where it was'
        )
    at = now(session)
    record(session, job_id, "retry", attempt=job.attempt, at=at, detail={"retries": job.retries})
    moved = move(
        session,
        job,
        State.QUEUED,
        at=at,
        intent=Intent.RUN,
        retries=0,
        waits_from=at,
        not_before=None,
        finished_at=None,
    )
    assert moved, "its row is held"
    return job


def change(session: Session, job_id: int, changes: JobChanges) -> Job:
    """Change what may be changed of a job in any state; its spec stays as it was submitted.

    Raises InvalidSpecError for more labels than a job may have.
    """
    job = hold(session, job_id)
    new: dict[str, Any] = {}
    if changes.priority is not None:
        new["priority"] = changes.priority
    if changes.labels:
        new["labels"] = merged(job.labels, changes.labels)
        if len(new["labels"]) > MOST_LABELS:
            raise InvalidSpecError("labels", f"{len(new['labels'])} labels; a job may have {MOST_LABELS}")
    new = {name: value for name, value in new.items() if value != getattr(job, name)}
    if not new:
        return job
    at = now(session)
    detail = {name: {"from": getattr(job, name), "to": value} for name, value in new.items()}
    record(session, job_id, "change", attempt=job.attempt, at=at, detail=detail)
    changed(session, update(Job).where(Job.id == job_id).values(updated_at=at, **new))
    return get(session, job_id)


def clone(session: Session, job_id: int, wanted: Clone, *, by: Principal = LOCAL) -> Submission:
    """Submit a new job like this one, whatever its state, with changes.

    Raises InvalidChangesError where that makes no valid spec, and InvalidSpecError and ForbiddenError as `submit` does.
    """
    job = get(session, job_id)
    # A spec never changes; what its user has changed since is in columns.
    stored = job.spec | {"priority": job.priority, "labels": job.labels}
    try:
        fields = merged(stored, wanted.changes)
        if wanted.start_from is not None:
            fields["start_from"] = wanted.start_from.of(job_id).model_dump()
        spec = JobSpec.model_validate(fields)
    except ValidationError as error:
        raise InvalidChangesError(f"job {job_id}'s spec with these changes") from error
    except RecursionError as error:
        raise InvalidSpecError("changes", "nested too deep") from error
    return submit(session, spec, by=by, parent_id=job_id)


def _move_to(session: Session, job: Job, place: Place) -> None:
    """Write where a paused job goes on. What it trains never changes; where it does is no part of that."""
    if job.state != State.PAUSED or job.intent == Intent.CANCEL:
        raise StateConflictError(
            f"job {job.id} {_STANDING[_standing(job)]}; only a paused one can go on elsewhere: pause it and "
            "wait until it is paused"
        )
    try:
        spec = JobSpec.model_validate(merged(job.spec, place.changes))
    except ValidationError as error:
        raise InvalidChangesError(f"job {job.id} in its new place") from error
    stored = spec.model_dump(mode="json")
    news = {name: {"from": job.spec.get(name), "to": stored[name]} for name in place.changes}
    news = {name: each for name, each in news.items() if each["from"] != each["to"]}
    if not news:
        return
    at = now(session)
    record(session, job.id, "change", attempt=job.attempt, at=at, detail=news)
    columns = {"spec": job.spec | {name: stored[name] for name in news}, "request": spec.request.model_dump_json()}
    changed(session, update(Job).where(Job.id == job.id).values(updated_at=at, **columns))


def _intend(session: Session, job_id: int, intent: Intent) -> Job:
    job = set_intent(session, job_id, intent)
    if job.intent != intent or State(job.state).is_terminal:
        raise StateConflictError(f"job {job_id} {_STANDING[_standing(job)]}")
    return job


def hold(session: Session, job_id: int) -> Job:
    """Return a job with its row held until the transaction is over."""
    job = get(session, job_id)
    session.refresh(job, with_for_update=True)
    return job


def _standing(job: Job) -> State:
    """Its state, or the one that it is bound for where it is to be cancelled."""
    return State.CANCELLED if job.intent == Intent.CANCEL and job.state != State.SUCCEEDED else State(job.state)


_STANDING = {
    State.QUEUED: "waits in the line already; there is nothing to retry",
    State.STARTING: "is starting; there is nothing to retry",
    State.RUNNING: "is running; there is nothing to retry",
    State.PAUSED: "is paused; resume it",
    State.SUCCEEDED: "has succeeded; clone it to run it again",
    State.FAILED: "has failed; retry it, or clone it with changes",
    State.CANCELLED: "was cancelled, which is final; clone it to run it again",
}
"""Why a verb cannot be followed, and the way out, after the job's name."""
