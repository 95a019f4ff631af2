"""One round of planning: read, decide, write, in one transaction under one lock."""

from dataclasses import dataclass
from typing import assert_never

from sqlalchemy.orm import Session

from jobs.database import lock_planning
from jobs.planner.plan import plan
from jobs.planner.view import Preempt, Start, Wait
from jobs.store import attempts, lines, scenes


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
    sight = scenes.read(session)
    scenes.catch_up(session, sight)
    if not sight.scene.waiting:
        return []
    launches: list[Launch] = []
    waits: list[Wait] = []
    for decision in plan(sight.scene):
        match decision:
            case Start():
                placements = attempts.start(session, decision)
                launches += [Launch(each.host_name, each.id, each.job_id, each.attempt) for each in placements]
            case Wait():
                waits.append(decision)
            case Preempt():
                attempts.preempt(session, decision)
            case _:
                assert_never(decision)
    lines.note(session, waits, sight.said, at=sight.scene.now)
    return launches
