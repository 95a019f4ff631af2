"""One round of planning: read, decide, write, in one transaction under one lock."""

from dataclasses import dataclass

from sqlalchemy.orm import Session

from jobs import planner
from jobs.database import lock_planning, now
from jobs.store import attempts, hosts, jobs


@dataclass(frozen=True)
class Launch:
    """A placement that its host should start."""

    host_name: str
    placement_id: int
    job_id: int
    attempt: int


def plan_once(session: Session) -> list[Launch]:
    """Start every job that can start and note for the others what they wait for; return what to launch."""
    lock_planning(session)
    waiting = jobs.waiting(session)
    if not waiting:
        return []
    reasons = {job.id: job.reason for job in waiting}
    launches = []
    for decision in planner.plan(waiting, hosts.planner_view(session, now(session))):
        if isinstance(decision, planner.Wait):
            if decision.reason != reasons[decision.job_id]:
                jobs.set_reason(session, decision.job_id, decision.reason)
            continue
        placement = attempts.start(session, decision)
        if placement is not None:
            launches.append(Launch(placement.host_name, placement.id, placement.job_id, placement.attempt))
    return launches
