"""Endings: how placements end, one after the other, and what the last one's end makes of attempt and job.

`end_placement` alone releases leases and ends attempts. Of several supervisors that end at once each waits for the
attempt's row, so exactly one of them finds no other placement open, and concludes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from jobs.database import now
from jobs.errors import StaleAttemptError
from jobs.outcomes import Failure, backoff_s, conclude, first_failure
from jobs.settings import get_settings
from jobs.states import Intent, Outcome, State, StopOrder
from jobs.store import attempts, leases, quarantine, usage
from jobs.store.jobs import settle
from jobs.store.transitions import changed, move
from jobs.tables import Attempt, Job, Lease, Placement
from trainer.errors import Cause

NOT_BEGUN = frozenset({Cause.DISK_FULL, Cause.LOST})
"""Causes of an attempt that spent no retry, but was not stopped in order: a host could not begin its part of it."""


@dataclass(frozen=True)
class Conclusion:
    """What became of an attempt whose last placement has ended."""

    outcome: Outcome
    state: State
    """The job's new one."""


def end_placement(
    session: Session,
    placement: Placement,
    *,
    completed: bool,
    failure: dict[str, Any] | None = None,
    spends_retry: bool = True,
    still_used: str | None = None,
    idle_s: float = 0.0,
) -> Conclusion | None:
    """End a placement and free its devices, all or nothing; the last one of an attempt ends it and moves its job on.

    `completed` says that it has done its part: on node 0, with the completion record; `failure` is else its error
    report. A lost attempt spends one of the job's retries, unless its host was shut down in order or could not begin it
    (`spends_retry=False`). `idle_s` is how long ago its ranks had ended, in seconds, which the job has not trained.
    Returns None while other placements of the attempt are open: these are told to stop.

    The caller has proven that no process of the placement is left, or that the time is past by which a cut-off
    supervisor has killed its own, or says with `still_used` which process cannot be killed: then the devices are taken
    away in the same transaction. Raises StaleAttemptError if the placement has ended already.
    """
    attempts.fence(session, placement)
    at = now(session)  # with the attempt's row held: its end is later than all that was written in its name
    ended = {"ended_at": at, "completed": completed, "failure": failure, "spends_retry": spends_retry}
    changed(session, update(Placement).where(Placement.id == placement.id).values(ended))
    if placement.node_rank == 0:
        mine = (Attempt.job_id == placement.job_id, Attempt.number == placement.attempt)
        until = at - timedelta(seconds=idle_s)
        changed(session, update(Attempt).where(*mine).values(trained_until=until))
    held = (Lease.placement_id == placement.id, Lease.released_at.is_(None))
    acquired = session.scalars(select(Lease.acquired_at).where(*held)).all()
    changed(session, update(Lease).where(*held).values(released_at=at))
    siblings = _placements(session, placement)
    conclusion = None
    if any(each.ended_at is None for each in siblings):
        _stop_peers(session, placement)
        job = session.get_one(Job, placement.job_id, populate_existing=True)
    else:
        conclusion, job = _conclude(session, siblings, at=at)
    if still_used is not None:
        quarantine.take_away(session, placement, why=still_used, at=at)
    usage.add(session, job, sum(usage.weighed((at - since).total_seconds()) for since in acquired), at)
    return conclusion


def expire(session: Session, placement: Placement) -> bool:
    """End a placement as lost if its leases have run out; False if it has ended, was renewed, or is being written.

    One transaction for each: a placement that a hung process holds must not keep the others' devices from being freed.
    """
    try:
        attempts.fence(session, placement, skip_locked=True)
    except StaleAttemptError:
        return False
    if not leases.have_run_out(session, placement):
        return False
    placements = _placements(session, placement)  # as they are by now
    where = "" if len(placements) == 1 else f" on {placement.host_name}"
    message = f"its lease ran out: no word from its supervisor{where}"
    failure = {"cause": Cause.LOST, "message": message, "rank": None, "time": datetime.now(UTC).isoformat()}
    # One that no supervisor ever claimed was not begun: nothing that the job does came into it.
    spends_retry = placements[placement.node_rank].claimed_at is not None
    end_placement(session, placement, completed=False, failure=failure, spends_retry=spends_retry)
    return True


def _placements(session: Session, placement: Placement) -> Sequence[Placement]:
    """All placements of the same attempt, by node_rank."""
    mine = (Placement.job_id == placement.job_id, Placement.attempt == placement.attempt)
    query = select(Placement).where(*mine).order_by(Placement.node_rank)
    return session.scalars(query, execution_options={"populate_existing": True}).all()


def _stop_peers(session: Session, placement: Placement) -> None:
    """No rank can go on without those of a node that has ended; one that was told to stop already knows better why."""
    mine = (Attempt.job_id == placement.job_id, Attempt.number == placement.attempt, Attempt.stop_order.is_(None))
    message = f"node {placement.node_rank} ({placement.host_name}) has ended"
    changed(session, update(Attempt).where(*mine).values(stop_order=StopOrder.PEER_ENDED, stop_message=message))


def _conclude(session: Session, placements: Sequence[Placement], *, at: datetime) -> tuple[Conclusion, Job]:
    """End an attempt, all of whose `placements` have ended, and move its job on."""
    attempt = session.get_one(Attempt, (placements[0].job_id, placements[0].attempt), populate_existing=True)
    # With its row held: an intent written at this moment is either seen here, or sees the state written here.
    job = session.get_one(Job, attempt.job_id, populate_existing=True, with_for_update=True)
    first = first_failure([_failure(each) for each in placements if each.failure is not None])
    outcome = conclude(
        completed=placements[0].completed is True,
        cause=Cause.LOST if first is None else first.cause,
        intent=Intent(job.intent),
        order=None if attempt.stop_order is None else StopOrder(attempt.stop_order),
    )
    report = None if first is None or outcome is Outcome.SUCCEEDED else first.report
    mine = (Attempt.job_id == attempt.job_id, Attempt.number == attempt.number)
    changed(session, update(Attempt).where(*mine).values(ended_at=at, outcome=outcome, failure=report))
    if outcome is Outcome.SUCCEEDED:
        quarantine.forget_losses(session, placements)
    elif outcome is Outcome.LOST and first is not None and first.may_be_of_a_device:
        _blame(session, placements, attempt, first, at=at)
    to, columns = _next_state(job, outcome, first, at=at)
    columns["failure"] = report if outcome in (Outcome.FAILED, Outcome.LOST) else None
    detail: dict[str, Any] = {"outcome": outcome}
    if report is not None:
        detail |= {"cause": report.get("cause"), "message": report.get("message"), "rank": report.get("rank")}
    moved = move(session, job, to, at=at, detail=detail, **columns)
    assert moved, "the attempt that has just ended was the only one that could move the job"
    settle(session, job)  # the user may have changed their mind since the outcome was concluded
    return Conclusion(outcome, State(job.state)), job


def _failure(placement: Placement) -> Failure:
    assert placement.failure is not None
    assert placement.ended_at is not None
    spends_retry = placement.spends_retry is not False
    return Failure(placement.node_rank, placement.failure, spends_retry, placement.ended_at)


def _blame(
    session: Session, placements: Sequence[Placement], attempt: Attempt, first: Failure, *, at: datetime
) -> None:
    """Count the loss on the device of the rank at fault, or, of a single host, on all where no rank is known to be."""
    rank = first.report.get("rank")
    if rank is None and len(placements) > 1:
        return  # hosts that lost each other, or wait for each other: nobody can tell whose device it was, if any's
    placement = placements[first.node_rank]
    local_rank = None
    if rank is not None and attempt.world_size == sum(len(each.devices) for each in placements):
        local_rank = int(rank) - first.node_rank * len(placement.devices)  # one rank on each device, unlike with dp
    quarantine.count_loss(session, placement, local_rank=local_rank, why=str(first.report.get("message")), at=at)


def _next_state(job: Job, outcome: Outcome, first: Failure | None, *, at: datetime) -> tuple[State, dict[str, Any]]:
    """Where a job goes when its attempt ends, and the columns that change with it."""
    if outcome is Outcome.PREEMPTED:
        return State.QUEUED, {}
    if outcome is not Outcome.LOST:
        return State(outcome.value), {}
    if job.intent == Intent.CANCEL:
        return State.CANCELLED, {}
    if job.intent == Intent.PAUSE:
        return State.PAUSED, {}
    spends_retry = first is None or first.spends_retry
    if first is not None and not spends_retry and first.cause not in NOT_BEGUN:
        return State.QUEUED, {}
    if spends_retry and job.retries >= job.max_retries:
        return State.FAILED, {}
    # A host that cannot begin what was planned on it would else get it again with the next plan.
    retries, settings = job.retries + spends_retry, get_settings()
    rest_s = backoff_s(max(retries, 1), first_s=settings.retry_backoff_s, longest_s=settings.retry_backoff_max_s)
    return State.QUEUED, {"retries": retries, "not_before": at + timedelta(seconds=rest_s) if rest_s else None}
