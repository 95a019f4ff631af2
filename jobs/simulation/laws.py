"""The laws that every plan keeps, checked against what was decided rather than how. The fleet checks who gets what."""

from collections import Counter
from collections.abc import Sequence
from math import inf

from jobs.planner.order import EVERY_USER
from jobs.planner.view import Account, Decision, Preempt, Reservation, Scene, Start, Wait
from jobs.simulation.fleet import BrokenPlanError
from jobs.simulation.usage import accounts_of


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
            start = decision.reservation.start
            for device_id in decision.reservation.device_ids:
                # One whose start is not known still starts after one before it on the same device.
                before = free_until.get(device_id, inf if start is not None else -inf)
                free_until[device_id] = before if start is None else min(start, before)
    if undecided:
        raise BrokenPlanError(f"job {min(undecided)} is not decided upon")
    _check_stops(scene, decisions)
    _check_quotas(scene, decisions)
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


def _check_quotas(scene: Scene, decisions: Sequence[Decision]) -> None:
    """No job starts where its user, or one of its labels, then has more devices than allowed."""
    most = {quota.account: quota.max_devices for quota in scene.quotas if quota.max_devices is not None}
    if not most:
        return
    held: Counter[Account] = Counter()
    for job in scene.running:
        for account in accounts_of(job.user, job.labels):
            held[account] += len(job.device_ids)
    waiting = {job.id: job for job in scene.waiting}
    for decision in decisions:
        if not isinstance(decision, Start):
            continue
        starting = waiting[decision.job_id]
        for account in accounts_of(starting.user, starting.labels):
            held[account] += starting.request.device_count
            allowed = most.get(account, most.get(EVERY_USER, inf) if account[0] == "user" else inf)
            if held[account] > allowed:
                raise BrokenPlanError(
                    f"job {starting.id} starts beyond the quota of {' '.join(account)}: {allowed} devices"
                )
