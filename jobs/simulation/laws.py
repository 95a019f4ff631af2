"""The laws that every plan keeps, checked against what was decided rather than how. The fleet checks who gets what."""

from collections.abc import Sequence
from math import inf

from jobs.planner.view import Decision, Preempt, Reservation, Scene, Start, Wait
from jobs.simulation.fleet import BrokenPlanError


def check_plan(scene: Scene, decisions: Sequence[Decision]) -> int:
    """Return how many jobs start past one for which devices are set aside.

    Raises BrokenPlanError where a job is decided upon twice or not at all, where one that starts delays a reservation
    by what was foretold, or a reservation is put off.
    """
    waiting = {job.id: job for job in scene.waiting}
    undecided = set(waiting)
    free_until: dict[int, float] = {}
    """Until when those later in the line may use the devices that are set aside."""
    passed = 0
    for decision in decisions:
        if isinstance(decision, Preempt):
            continue
        job = waiting[decision.job_id]
        if job.id not in undecided:
            raise BrokenPlanError(f"job {job.id} is decided upon twice")
        undecided.remove(job.id)
        if isinstance(decision, Start):
            passed += bool(free_until)
            until = min((free_until.get(each.id, inf) for node in decision.nodes for each in node.devices), default=inf)
            if until < inf and (job.duration_s is None or scene.now + job.duration_s > until):
                raise BrokenPlanError(
                    f"job {job.id} starts at {scene.now:.1f} for {job.duration_s} s on a device that is set aside from"
                    f" {until:.1f} on for one before it"
                )
        elif decision.reservation is not None:
            _check_kept(decision, job.reservation)
            start = -inf if decision.reservation.start is None else decision.reservation.start
            for device_id in decision.reservation.device_ids:
                free_until[device_id] = min(start, free_until.get(device_id, inf))
    if undecided:
        raise BrokenPlanError(f"job {min(undecided)} is not decided upon")
    _check_stops(scene, decisions)
    return passed


def _check_kept(decision: Wait, before: Reservation | None) -> None:
    """A reservation of the same devices is never put off."""
    after = decision.reservation
    if before is None or after is None or before.device_ids != after.device_ids or before.start is None:
        return
    if after.start is None or after.start > before.start:
        raise BrokenPlanError(
            f"job {decision.job_id} has devices set aside from {before.start:.1f} on, now put off to {after.start}"
        )


def _check_stops(scene: Scene, decisions: Sequence[Decision]) -> None:
    """Only a job that may be stopped is, once, and for one of higher priority."""
    running = {job.id: job for job in scene.running}
    priorities = {job.id: job.priority for job in scene.waiting}
    stopped: set[int] = set()
    for decision in decisions:
        if not isinstance(decision, Preempt):
            continue
        job = running[decision.job_id]
        may_be = job.preemptible and job.priority < priorities[decision.for_job] and job.attempt == decision.attempt
        if not may_be or job.is_stopping or job.id in stopped:
            raise BrokenPlanError(f"job {job.id} is stopped for job {decision.for_job}, against the rule")
        stopped.add(job.id)
