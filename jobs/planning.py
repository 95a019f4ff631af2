"""One round of planning: read, decide, write, in one transaction under one lock."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import assert_never

from sqlalchemy.orm import Session

from jobs.database import lock_planning, now, try_lock_planning
from jobs.planner.plan import plan
from jobs.planner.view import Preempt, Start, Wait
from jobs.store import attempts, audit, idempotency, lines, scenes, usage
from jobs.tables import PlanningRound


@dataclass(frozen=True)
class Launch:
    """A placement that its host should start."""

    host_name: str
    placement_id: int
    job_id: int
    attempt: int


def plan_unless_planned(session: Session, *, within_s: float = 0) -> list[Launch]:
    """Plan once, unless another round began since this was called, or within `within_s` seconds before.

    A round that began since sees all that the caller knows of: what was committed before the call. So workers that are
    woken at the same time plan once between them, and what wakes them is never lost. With `within_s`, for sweeps, a
    round that is under way will do as well, and is not waited for.
    """
    asked_at = now(session)
    if within_s == 0:
        lock_planning(session)
    elif not try_lock_planning(session):
        return []
    began_at = now(session)
    last = session.get(PlanningRound, 1, populate_existing=True)
    # A round in the future was before somebody set the database's clock back.
    if last is not None and asked_at - timedelta(seconds=within_s) < last.began_at <= began_at:
        return []
    is_first_of_its_hour = last is None or _hour(last.began_at) != _hour(began_at)
    session.merge(PlanningRound(id=1, began_at=began_at))
    if is_first_of_its_hour:  # here, since rounds are what all workers do between them
        audit.forget(session, began_at)
        idempotency.forget(session, began_at)
        usage.forget_faded(session, began_at)
    return plan_once(session)


def plan_once(session: Session) -> list[Launch]:
    """Start every job that can start and note for the others what they wait for; return what to launch."""
    lock_planning(session)
    with without_collections():
        return _round(session)


def _round(session: Session) -> list[Launch]:
    sight = scenes.read(session)
    scenes.catch_up(session, sight)
    if not sight.scene.waiting:
        return []
    launches: list[Launch] = []
    waits: list[Wait] = []
    for decision in plan(sight.scene):
        match decision:
            case Start():
                launches += _start(session, decision)
            case Wait():
                waits.append(decision)
            case Preempt():
                attempts.preempt(session, decision)
            case _:
                assert_never(decision)
    lines.note(session, waits, sight.said, at=sight.scene.now)
    return launches


def _start(session: Session, decision: Start) -> list[Launch]:
    """Start a job, unless its spec is of another version, though its request is not: it must not end the round."""
    try:
        placements = attempts.start(session, decision)
    except ValueError as error:
        scenes.distrust_request(session, decision.job_id, error)
        return []
    return [Launch(each.host_name, each.id, each.job_id, each.attempt) for each in placements]


def _hour(at: datetime) -> datetime:
    return at.replace(minute=0, second=0, microsecond=0)


@contextmanager
def without_collections() -> Iterator[None]:
    """Keep Python's collector of cyclic garbage out of a round.

    With ten thousand jobs a round makes some hundred thousand objects, which go by their counts when it is over; the
    collector would look through all of them again and again, and take half of the round's time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
