"""The scene that a plan is made from, as the database has it."""

from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from jobs.database import now
from jobs.planner.request import parse_request
from jobs.planner.view import Device, Host, Policy, RunningJob, Scene, WaitingJob
from jobs.settings import get_settings
from jobs.spec import stored_request
from jobs.states import Intent, State
from jobs.store import hosts, lines
from jobs.tables import Job, Lease


def read(session: Session) -> Scene:
    """Return all that the next plan is made from."""
    at = now(session)
    settings = get_settings()
    return Scene(
        now=at.timestamp(),
        waiting=tuple(_waiting(session)),
        running=tuple(_running(session)),
        hosts=tuple(view_hosts(session, at)),
        policy=Policy(ageing_s=settings.ageing_s, fair_share_s=settings.fair_share_s),
    )


def view_hosts(session: Session, at: datetime) -> list[Host]:
    """Return all hosts as the planner sees them, at the database's time `at`."""
    by_host: dict[str, list[Device]] = {}
    for row, _job_id, _attempt in hosts.devices(session):
        device = Device(row.id, row.name, row.kind, row.model, row.memory_bytes, row.quarantined_at is not None)
        by_host.setdefault(row.host_name, []).append(device)
    return [
        Host(host.name, tuple(by_host.get(host.name, ())), None if hosts.is_alive(host, at) else "out of contact")
        for host in hosts.all_hosts(session)
    ]


def _waiting(session: Session) -> list[WaitingJob]:
    """Every queued job that wants to run.

    One whose spec this version cannot read stays where it is and says so; it must not keep the others from starting.
    """
    found = []
    for job in session.scalars(select(Job).where(Job.state == State.QUEUED, Job.intent == Intent.RUN)):
        try:
            request = parse_request(job.request) if job.request else stored_request(job.spec)
        except ValueError as error:
            lines.note_unreadable(session, job.id, error)
            continue
        found.append(WaitingJob(job.id, job.priority, job.waits_from.timestamp(), request, job.user, job.labels))
    return found


def _running(session: Session) -> list[RunningJob]:
    held: dict[tuple[int, int], list[int]] = {}
    live = select(Lease.job_id, Lease.attempt, Lease.device_id).where(Lease.released_at.is_(None))
    for job_id, attempt, device_id in session.execute(live):
        held.setdefault((job_id, attempt), []).append(device_id)
    return [RunningJob(job_id, attempt, 50, tuple(devices)) for (job_id, attempt), devices in held.items()]
