"""Jobs: storing them, and what the user wants of each."""

from dataclasses import dataclass

from sqlalchemy import update
from sqlalchemy.orm import Session

from jobs.access import LOCAL, Principal
from jobs.checkpoint_roots import refuse_unknown
from jobs.database import now
from jobs.errors import ForbiddenError, InvalidSpecError, NotFoundError
from jobs.planner.quotas import Quotas
from jobs.planner.reasons import why_never
from jobs.roots import Needs
from jobs.spec import JobSpec
from jobs.spec_size import refuse_large
from jobs.states import Intent, State
from jobs.store import lineage, outbox, quotas, reach, roots, scenes, secrets
from jobs.store.idempotency import Kind
from jobs.store.transitions import changed, move, record
from jobs.tables import Job


@dataclass(frozen=True)
class Submission:
    """A stored job, and what its submitter should know."""

    job: Job
    warnings: tuple[str, ...]


SUBMITTED = Kind[Submission](
    "jobs",
    id_of=lambda submission: submission.job.id,
    again=lambda session, job_id: Submission(get(session, int(job_id)), ()),
)


def settle_spec(session: Session, spec: JobSpec, *, by: Principal = LOCAL) -> tuple[JobSpec, Needs | None]:
    """Return a spec as it may be submitted, for its submitter where it names nobody, and what it needs of the operators
    of hosts.

    Raises InvalidSpecError for a recipe, model or data set that no registered host knows, for a checkpoint root of no
    known scheme, for a secret that is not there, for data or a program that no host allows, and for a spec that is too
    large; ForbiddenError for a job for somebody else.
    """
    if spec.user is None and by.user is not None:
        spec = spec.model_copy(update={"user": by.user})
    elif spec.user is not None and not by.owns(spec.user):
        raise ForbiddenError(f"user: only the role admin may submit for {spec.user}; leave it out")
    refuse_large(spec.model_dump(mode="json"))
    needs = roots.settle(session, spec)
    secrets.require(session, spec.secrets)
    # Here and not in the spec itself: a stored one stays readable, whatever a host has installed.
    try:
        refuse_unknown(spec.checkpoint_root or "")
    except ValueError as error:
        raise InvalidSpecError("checkpoint_root", str(error)) from error
    return spec, needs


def submit(session: Session, spec: JobSpec, *, by: Principal = LOCAL, parent_id: int | None = None) -> Submission:
    """Store a job as queued; `parent_id` is the job it is a copy of, else the one it starts from is its parent.

    Raises what `settle_spec` does, and InvalidSpecError for a checkpoint to start from that is not there.
    """
    spec, needs = settle_spec(session, spec, by=by)
    origin = None
    if spec.start_from is not None:
        origin = lineage.find_checkpoint(session, spec.start_from)
        lineage.hold(session, origin)
        # By its id from now on: the other job may save a later or a better one before this one starts.
        settled = spec.start_from.model_copy(update={"checkpoint": origin.id})
        spec = spec.model_copy(update={"start_from": settled})
    at = now(session)
    job = Job(
        name=spec.shown_name,
        spec=spec.model_dump(mode="json"),
        labels=dict(spec.labels),
        priority=spec.priority,
        max_retries=spec.max_retries,
        state=State.QUEUED,
        intent=Intent.RUN,
        attempt=0,
        retries=0,
        created_at=at,
        updated_at=at,
        queued_at=at,
        waits_from=at,
        user=spec.user,
        request=spec.request.model_dump_json(),
        needs=needs and needs.model_dump_json(),
        parent_id=parent_id or (origin and origin.job_id),
        parent_checkpoint_id=origin and origin.id,
    )
    fleet = scenes.view_hosts(session, at)
    limits = Quotas(quotas.read(session))
    too_many = limits.why_never(spec.request.device_count, spec.user, spec.labels)
    impossible = why_never(spec.request, fleet)
    job.reason = impossible or too_many
    session.add(job)
    session.flush()
    record(session, job.id, "submitted", attempt=0, at=at, to_state=State.QUEUED, detail={})
    outbox.tell_of_state(session, job, from_state=None, at=at)
    warnings = [] if impossible is None else [f"accepted, but {impossible}: the job waits until that changes"]
    if too_many is not None:
        warnings.append(f"accepted, but it {too_many}: the job waits until that changes")
    if origin is not None and (warning := lineage.warn_of_removal(session, origin)):
        warnings.append(warning)
    if (warning := reach.warn_of_gang(session, spec, fleet)) is not None:
        warnings.append(warning)
    return Submission(job, tuple(warnings))


def get(session: Session, job_id: int) -> Job:
    """Return a job. Raises NotFoundError."""
    job = session.get(Job, job_id, populate_existing=True) if 0 < job_id < 2**63 else None
    if job is None:
        raise NotFoundError(f"no job {job_id}")
    return job


def set_intent(session: Session, job_id: int, intent: Intent) -> Job:
    """Write what the user wants; a job with no live attempt follows at once, others once their supervisor reads it.

    A terminal job, and one that is to be cancelled, stays as it is. Raises NotFoundError.
    """
    get(session, job_id)
    at = now(session)
    # Asked for again, it has its place in the line from now on, and need not rest any longer.
    columns = {"waits_from": at, "not_before": None} if intent is Intent.RUN else {}
    statement = update(Job).where(
        Job.id == job_id, Job.intent.not_in([intent, Intent.CANCEL]), Job.finished_at.is_(None)
    )
    if changed(session, statement.values(intent=intent, updated_at=at, **columns)):
        job = get(session, job_id)
        record(session, job_id, "intent", attempt=job.attempt, at=at, detail={"intent": intent})
        settle(session, job)
    return get(session, job_id)


def settle(session: Session, job: Job) -> None:
    """Bring a job that has no live attempt to what its user wants. No-op for any other."""
    at = now(session)
    state, intent = State(job.state), Intent(job.intent)
    if state in (State.QUEUED, State.PAUSED) and intent is Intent.CANCEL:
        move(session, job, State.CANCELLED, at=at)
    elif state is State.QUEUED and intent is Intent.PAUSE:
        move(session, job, State.PAUSED, at=at)
    elif state is State.PAUSED and intent is Intent.RUN:
        move(session, job, State.QUEUED, at=at)
