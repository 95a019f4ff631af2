"""The report of a simulation: how long jobs waited, how busy the devices were, and what the planning took."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, inf

from jobs.planner.view import Wait
from jobs.simulation.run import Simulation
from jobs.simulation.tally import Started

GANGS = ((1, 1), (2, 4), (5, 8), (9, 16), (17, 32), (33, 64), (65, None))
"""Gangs are told apart by size, in devices: from, to."""
CLASSES = ((75, 100), (50, 74), (25, 49), (0, 24))
"""Classes of priority: from, to."""
MOST_NAMED = 5
"""Jobs that never start are named up to so many; they have few reasons."""


@dataclass(frozen=True)
class Waits:
    """How long jobs waited from their submission to their first start, in seconds."""

    jobs: int
    mean_s: float
    p50_s: float
    p95_s: float
    p99_s: float
    longest_s: float


@dataclass(frozen=True)
class LongestGangWait:
    """The longest wait of a job of several devices, beside what it must not exceed."""

    job_id: int
    devices: int
    nodes: int
    priority: int
    wait_s: float
    bound_s: float


@dataclass(frozen=True)
class Planning:
    """What the plans took, in milliseconds of CPU time."""

    plans: int
    mean_ms: float
    p95_ms: float
    worst_ms: float


@dataclass(frozen=True)
class Report:
    """What a simulation found, up to where it got."""

    jobs: int
    """In the whole stream."""
    hosts: int
    devices: int
    submitted: int
    started: int
    ended: int
    simulated_s: float
    busy: float
    """Share of the devices' time that jobs had."""
    busy_while_blocked: float
    """The same, of the time for which a plan had left some job waiting: what the planner can be held to."""
    most_blocked: int
    """Jobs that one plan left waiting, at most."""
    backfilled: int
    """Starts while a job before it in the line had devices set aside that it could not use yet."""
    preemptions: int
    waits: Waits
    waits_by_gang: dict[str, Waits]
    waits_by_priority: dict[str, Waits]
    longest_gang_wait: LongestGangWait | None
    over_bound: int
    """Jobs of any size that waited for longer than their bound."""
    planning: Planning
    waiting: int
    """Jobs that still wait."""
    waiting_for: dict[int, str]
    """Of the first few of them, by id, the reason that the last plan gave."""


def report(simulation: Simulation) -> Report:
    """Return what there is to say of a simulation, be it over or not."""
    tally, devices = simulation.tally, simulation.fleet.size
    reasons = {each.job_id: each.reason for each in simulation.decisions if isinstance(each, Wait)}
    still = [(job_id, reasons[job_id]) for job_id in sorted(simulation.waiting) if job_id in reasons]
    return Report(
        jobs=len(simulation.stream),
        hosts=len(simulation.fleet.hosts),
        devices=devices,
        submitted=simulation.submitted,
        started=len(tally.started),
        ended=tally.ended,
        simulated_s=tally.elapsed_s,
        busy=_share(tally.held_device_s, devices * tally.elapsed_s),
        busy_while_blocked=_share(tally.held_while_blocked_device_s, devices * tally.blocked_s),
        most_blocked=tally.most_blocked,
        backfilled=tally.backfilled,
        preemptions=tally.preemptions,
        waits=_waits(tally.started),
        waits_by_gang=_by_gang(tally.started),
        waits_by_priority=_by_priority(tally.started),
        longest_gang_wait=_longest_gang_wait(tally.started),
        over_bound=sum(each.wait_s > each.bound_s for each in tally.started),
        planning=_planning(tally.plan_s),
        waiting=len(simulation.waiting),
        waiting_for=dict(still[:MOST_NAMED]),
    )


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return the smallest of some values, in order, that at least `share` of them do not exceed; 0 of none."""
    return ordered[max(ceil(share * len(ordered)) - 1, 0)] if ordered else 0.0


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _waits(started: Iterable[Started]) -> Waits:
    waits = sorted(each.wait_s for each in started)
    p50, p95, p99, longest = (percentile(waits, share) for share in (0.5, 0.95, 0.99, 1))
    return Waits(len(waits), _share(sum(waits), len(waits)), p50, p95, p99, longest)


def _by_gang(started: Sequence[Started]) -> dict[str, Waits]:
    found = {}
    for low, high in GANGS:
        name = f"{low} and more" if high is None else f"{low}" if low == high else f"{low} to {high}"
        members = [each for each in started if low <= each.job.request.device_count <= (high or inf)]
        if members:
            found[name] = _waits(members)
    return found


def _by_priority(started: Sequence[Started]) -> dict[str, Waits]:
    found = {}
    for low, high in CLASSES:
        members = [each for each in started if low <= each.job.priority <= high]
        if members:
            found[f"{low} to {high}"] = _waits(members)
    return found


def _longest_gang_wait(started: Iterable[Started]) -> LongestGangWait | None:
    gangs = [each for each in started if each.job.request.device_count > 1]
    if not gangs:
        return None
    # Of equal ones the first, so that the same stream always gives the same report.
    longest = max(gangs, key=lambda each: (each.wait_s, -each.job_id))
    request = longest.job.request
    return LongestGangWait(
        longest.job_id,
        request.device_count,
        request.nodes,
        longest.job.priority,
        longest.wait_s,
        longest.bound_s,
    )


def _planning(plan_s: Sequence[float]) -> Planning:
    ordered = sorted(plan_s)
    mean = _share(sum(ordered), len(ordered))
    p95, worst = percentile(ordered, 0.95), percentile(ordered, 1)
    return Planning(len(ordered), mean * 1000, p95 * 1000, worst * 1000)
