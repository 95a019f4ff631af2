"""Made-up streams, from a seed: what a shared cluster sees, in proportions that a reader can argue with."""

from dataclasses import dataclass
from math import ceil, cos, log, pi
from random import Random

from jobs.device_count import DeviceCount
from jobs.planner.request import Request
from jobs.simulation.stream import StreamJob

GANGS = {1: 50, 2: 14, 3: 1, 4: 14, 6: 1, 8: 12, 12: 1, 16: 4, 32: 2, 64: 1}
"""Sizes in devices, with their weights: mostly powers of two, some of which need several hosts."""
MEDIAN_S = 40 * 60.0
SIGMA = 1.6
"""Durations are log-normal: half of them are below the median, and one in a hundred is 40 times as long."""
SHORTEST_S, LONGEST_S = 60.0, 2 * 86_400.0
PRIORITIES = {20: 15, 50: 70, 80: 12, 95: 3}
PREEMPTIBLE = {20: 0.8, 50: 0.1}
"""Share of the jobs of a priority that may be stopped for another; none of the others."""
UNKNOWN = 0.15
"""Share of the jobs of which nothing is known: no time limit, and a program that reports no pace."""
LIMITED = 0.5
"""Share of the others that have a time limit."""
PACE_ERROR = 0.15
"""By how much a run's own pace may mislead, at most, as a share of its length."""
LARGE_MEMORY = 0.05
"""Share of the jobs that only the larger devices suit."""
TEAMS = ("audio", "language", "recsys", "robotics", "vision")
USERS_PER_TEAM = 8
RHYTHM = 0.6
"""In the afternoon so much more than on average is submitted, at night so much less, as a share of the average."""
DAY_S = 86_400.0
BUSIEST_S = 15 * 3600.0


@dataclass(frozen=True)
class Size:
    """How much a stream asks of which fleet."""

    jobs: int
    devices: int
    devices_per_host: int
    load: float
    """What is submitted in the long run, as a share of what the devices can do."""


def make_stream(size: Size, *, seed: int) -> list[StreamJob]:
    """Return a stream that keeps the fleet as busy as `load` says: the same for the same seed, on every machine."""
    random = Random(seed)
    drafts = [_draft(size, random) for _ in range(size.jobs)]
    device_s = sum(draft.real_s * draft.request.device_count for draft in drafts)
    moments = sorted(_moments(size.jobs, span_s=device_s / (size.devices * size.load), random=random))
    return [draft.model_copy(update={"submitted_s": at}) for draft, at in zip(drafts, moments, strict=True)]


def _draft(size: Size, random: Random) -> StreamJob:
    """A job that is not submitted yet."""
    runs_s = round(min(max(random.lognormvariate(log(MEDIAN_S), SIGMA), SHORTEST_S), LONGEST_S), 1)
    (priority,) = random.choices(list(PRIORITIES), list(PRIORITIES.values()))
    team = TEAMS[min(int(random.expovariate(0.5)), len(TEAMS) - 1)]
    limit_s, foretold_s = _foretold(runs_s, random)
    request = _request(size, random).model_copy(
        update={"preemptible": random.random() < PREEMPTIBLE.get(priority, 0), "time_limit_s": limit_s}
    )
    return StreamJob(
        submitted_s=0,
        runs_s=runs_s,
        request=request,
        priority=priority,
        user=f"{team}-{min(int(random.expovariate(0.4)), USERS_PER_TEAM - 1)}",
        labels={"team": team},
        foretold_s=foretold_s,
    )


def _request(size: Size, random: Random) -> Request:
    (gang,) = random.choices(list(GANGS), list(GANGS.values()))
    whole_hosts = size.devices // size.devices_per_host
    nodes = min(ceil(gang / size.devices_per_host), max(whole_hosts, 1))
    per_node = min(ceil(gang / nodes), size.devices_per_host, size.devices)
    # Of a fleet that is too small for it a job takes the half: with the large devices being few, any of them do.
    wants_large = random.random() < LARGE_MEMORY and 8 * nodes <= whole_hosts
    device = DeviceCount(count=per_node, min_memory_gb=100 if wants_large else None)
    return Request(device=device, per_node=per_node, nodes=nodes)


def _foretold(runs_s: float, random: Random) -> tuple[float | None, float | None]:
    """What is known of a job's length: its limit, and what its pace will say."""
    if random.random() < UNKNOWN:
        return None, None
    # People ask for more time than they need, in round numbers.
    limit_s = ceil(runs_s * random.uniform(1.05, 4) / 900) * 900.0 if random.random() < LIMITED else None
    return limit_s, round(runs_s * random.uniform(1 - PACE_ERROR, 1 + PACE_ERROR), 1)


def _moments(count: int, *, span_s: float, random: Random) -> list[float]:
    """Moments of submission within the span, more of them in the afternoon: those of a Poisson process of that rate."""
    moments: list[float] = []
    while len(moments) < count:
        at = random.uniform(0, span_s)
        if random.uniform(0, 1 + RHYTHM) < 1 + RHYTHM * cos(2 * pi * (at - BUSIEST_S) / DAY_S):
            moments.append(round(at, 1))
    return moments
