"""The forecast: what the planner would do now with a job that nobody has submitted yet."""

from dataclasses import dataclass, replace

from sqlalchemy.orm import Session

from jobs.access import LOCAL, Principal
from jobs.planner.matching import suitable_hosts
from jobs.planner.plan import plan
from jobs.planner.quotas import Quotas
from jobs.planner.reasons import why_never
from jobs.planner.view import Device, Scene, Start, Wait, WaitingJob
from jobs.spec import JobSpec
from jobs.store import lineage, reach, scenes
from jobs.store.jobs import settle_spec
from jobs.store.reach import Reach
from trainer.config import AUTO_BATCH, SCRIPT

NEWEST = 2**63 - 1
"""The id of the job that is not there: it comes after every other of its key."""


@dataclass(frozen=True)
class Candidate:
    """A host that could take one node of the job."""

    host_name: str
    closed: str | None
    """Why it gets no new jobs now."""
    devices: tuple[Device, ...]
    """Those that the job may use, busy or not, in rank order."""
    free: tuple[Device, ...]
    """Those of them that nobody holds now; some may be set aside for a job that waits."""


@dataclass(frozen=True)
class Forecast:
    """What would come of a spec."""

    decision: Start | Wait
    position: int
    """Its place among those that wait, from 1."""
    candidates: tuple[Candidate, ...]
    world_size: int
    batch_per_rank: int | None
    """Samples of each global batch that one rank takes; None where the run finds its batch, or the batch is its own."""
    warnings: tuple[str, ...]
    """What its submitter should know."""
    at: float
    """The database's time, in seconds since the epoch."""


def foresee(session: Session, spec: JobSpec, *, by: Principal = LOCAL) -> Forecast:
    """Plan a spec with all that waits and runs now, and write nothing.

    Raises InvalidSpecError and ForbiddenError as a submission does.
    """
    spec, needs = settle_spec(session, spec, by=by)
    sight = scenes.read(session)
    request = spec.request
    job = WaitingJob(
        id=NEWEST,
        priority=spec.priority,
        waits_from=sight.scene.now,
        request=request,
        user=spec.user,
        labels=spec.labels,
        duration_s=spec.time_limit_s,
        is_supposed=True,
    )
    never = why_never(request, sight.scene.hosts)
    warnings = [] if never is None else [f"{never}: the job would wait until that changes"]
    too_many = Quotas(sight.scene.quotas).why_never(request.device_count, spec.user, spec.labels)
    if too_many is not None:
        warnings.append(f"{too_many}: the job would wait until that changes")
    if spec.start_from is not None:
        origin = lineage.find_checkpoint(session, spec.start_from)
        reached = sight.readers.of_another(reach.saved(origin))
        job = replace(job, resumes_on=reached.hosts, resume_note=reached.note)
        warnings += filter(None, [lineage.warn_of_removal(session, origin)])
    if needs is not None:
        reached = sight.allowances.narrowed(Reach(0, job.resumes_on, job.resume_note), needs.model_dump_json())
        job = replace(job, resumes_on=reached.hosts, resume_note=reached.note)
    warnings += filter(None, [reach.warn_of_gang(session, spec, sight.scene.hosts)])
    decisions = plan(replace(sight.scene, waiting=(*sight.scene.waiting, job)))
    order = [each.job_id for each in decisions if isinstance(each, Start | Wait)]
    (decision,) = [each for each in decisions if isinstance(each, Start | Wait) and each.job_id == job.id]
    starting = {each.job_id for each in decisions if isinstance(each, Start)} - {job.id}
    before = order[: order.index(job.id)]
    return Forecast(
        decision=decision,
        position=1 + sum(job_id not in starting for job_id in before),
        candidates=_candidates(sight.scene, job),
        world_size=spec.world_size,
        batch_per_rank=_batch_per_rank(spec),
        warnings=tuple(warnings),
        at=sight.scene.now,
    )


def _candidates(scene: Scene, job: WaitingJob) -> tuple[Candidate, ...]:
    held = {device_id for running in scene.running for device_id in running.device_ids}
    return tuple(
        Candidate(host.name, host.closed, devices, tuple(device for device in devices if device.id not in held))
        for host, devices in suitable_hosts(job.request, scene.hosts)
        if job.resumes_on is None or host.name in job.resumes_on
    )


def _batch_per_rank(spec: JobSpec) -> int | None:
    if spec.train.recipe == SCRIPT or spec.train.batch == AUTO_BATCH:
        return None
    return spec.train.batch // spec.world_size
