"""A small stream of jobs, drawn at random, planned again and again until every job has ended."""

import heapq
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from jobs.device_count import DeviceCount
from jobs.planner import bounds
from jobs.planner.plan import plan
from jobs.planner.request import Request
from jobs.planner.view import (
    Account,
    Decision,
    Device,
    Host,
    Policy,
    Preempt,
    Quota,
    RunningJob,
    Scene,
    Start,
    Wait,
    WaitingJob,
)
from tests.unit.planner import laws

MOST_PLANS = 5000


@dataclass
class Traffic:
    """What a stream has to do with."""

    is_honest: bool
    """Whether no job runs longer than foretold, and every length is known."""
    is_crowded: bool
    """Whether small jobs never stop coming."""
    preempts: bool
    closes: bool
    """Whether hosts go out of contact and come back."""
    has_quotas: bool
    policy: Policy


@dataclass
class Run:
    """A job on its way."""

    job: WaitingJob
    preemptible: bool
    left_s: float
    """What it really has to run."""
    foretold_s: float | None
    attempt: int = 0
    began: float = 0.0
    device_ids: tuple[int, ...] = ()
    is_stopping: bool = False
    starts: list[float] = field(default_factory=list)
    restarts: list[float] = field(default_factory=list)
    """When it was queued again."""
    ended: float | None = None


@dataclass
class Head:
    """The first job in the line, while it waits for devices."""

    number: int
    since: float
    foretold: float | None
    """When it was to start, as it was told when it came first."""


class Stream:
    """The service, without its processes: events happen, and after each of them there is a plan."""

    def __init__(self, seed: int) -> None:
        self._draws = random.Random(seed)
        self.traffic = self._draw_traffic()
        self.hosts = self._draw_hosts()
        jobs = self._draws.randint(60, 90) if self.traffic.is_crowded else self._draws.randint(5, 25)
        self.runs = {number: self._draw_job(number) for number in range(1, jobs)}
        self.now = 0.0
        self._events = [(run.job.waits_from, number, "submitted") for number, run in self.runs.items()]
        heapq.heapify(self._events)
        self._waiting: set[int] = set()
        self._running: set[int] = set()
        self._used: Counter[Account] = Counter()
        self.longest_foretold_s = 0.0
        self.longest_run_s = 0.0
        self._head: Head | None = None
        self.waits_of_heads: list[float] = []
        """Seconds from when a job was first in the line, and stayed that, until it started."""
        self.backfilled = 0

    def play(self) -> None:
        """Let everything happen, and check each plan against the laws."""
        if self.traffic.closes:
            for _ in range(4):
                at = self._draws.uniform(0, 200)
                heapq.heappush(self._events, (at, self._draws.randrange(len(self.hosts)), "contact"))
        for _ in range(MOST_PLANS):
            if not self._events:
                break
            self.now = self._events[0][0]
            while self._events and self._events[0][0] <= self.now:
                _at, number, what = heapq.heappop(self._events)
                self._happen(number, what)
            self._plan()
            if not self._events and self._waiting:
                self._open_one()
        assert not self._waiting, f"jobs {sorted(self._waiting)} never started"
        assert all(run.ended is not None for run in self.runs.values())

    def bound_s(self, number: int) -> float:
        """Seconds within which a job starts, by the bound and what the stream was like."""
        job = self.runs[number].job
        alone = job.waits_from + bounds.passed_for_s(job.priority, self.traffic.policy)
        others = [run for each, run in self.runs.items() if each != number and run.job.waits_from <= alone]
        ahead = sum(run.ended is None or run.ended > alone for run in others)
        # Each that was stopped comes back before it, and starts once more.
        ahead += 2 * sum(at > alone for run in self.runs.values() for at in run.restarts)
        return bounds.longest_wait_s(
            job.priority,
            self.traffic.policy,
            ahead=ahead,
            foretold_s=self.longest_foretold_s,
            run_s=self.longest_run_s,
        )

    def _plan(self) -> None:
        scene = self._scene()
        decisions = plan(scene)
        laws.check(scene, decisions)
        blocked: list[int] = []
        for each in decisions:
            if isinstance(each, Start):
                self._start(each)
                self.backfilled += bool(blocked)
            elif isinstance(each, Preempt):
                run = self.runs[each.job_id]
                run.is_stopping = True
                heapq.heappush(self._events, (self.now + self._draws.uniform(0, 2), each.job_id, "stopped"))
            else:
                self._note(each)
                if each.reservation is not None:
                    blocked.append(each.job_id)
        self._look_at_the_head(decisions)

    def _look_at_the_head(self, decisions: Sequence[Decision]) -> None:
        """Remember since when the first in the line is that, with nobody started before it, and what it was told."""
        first = next((each for each in decisions if not isinstance(each, Preempt)), None)
        if not isinstance(first, Wait) or self.traffic.closes or self.traffic.has_quotas:
            self._head = None  # nobody waits for devices at the head of the line, or not for devices alone
        elif self._head is None or self._head.number != first.job_id:
            self._head = Head(first.job_id, self.now, first.predicted_start)

    def _note(self, wait: Wait) -> None:
        run = self.runs[wait.job_id]
        before, reservation = run.job.reservation, wait.reservation
        run.job = replace(run.job, reservation=reservation)
        if reservation is not None and reservation.start is not None and reservation != before:
            self.longest_foretold_s = max(self.longest_foretold_s, reservation.start - self.now)

    def _scene(self) -> Scene:
        running = [self._view(number) for number in sorted(self._running)]
        usage = self._used.copy()
        for each in running:
            for account in laws.accounts(each.user, each.labels):
                usage[account] += int(len(each.device_ids) * (self.now - self.runs[each.id].began))
        return Scene(
            self.now,
            tuple(self.runs[number].job for number in sorted(self._waiting)),
            tuple(running),
            tuple(self.hosts),
            (Quota(("user", "*"), 4), Quota(("label", "team=vision"), 5, 2.0)) if self.traffic.has_quotas else (),
            usage,
            self.traffic.policy,
        )

    def _view(self, number: int) -> RunningJob:
        run = self.runs[number]
        return RunningJob(
            id=number,
            attempt=run.attempt,
            priority=run.job.priority,
            device_ids=run.device_ids,
            user=run.job.user,
            labels=run.job.labels,
            preemptible=run.preemptible,
            saved_at=run.began,
            predicted_end=None if run.foretold_s is None else run.began + run.foretold_s,
            is_stopping=run.is_stopping,
        )

    def _start(self, decision: Start) -> None:
        number = decision.job_id
        run = self.runs[number]
        if self._head is not None and self._head.number == number:
            self.waits_of_heads.append(self.now - self._head.since)
            if self.traffic.is_honest and not self.traffic.preempts and self._head.foretold is not None:
                assert self.now <= self._head.foretold, f"job {number} was to start by then"
        self._waiting.discard(number)
        self._running.add(number)
        run.attempt += 1
        run.began = self.now
        run.starts.append(self.now)
        run.job = replace(run.job, reservation=None)
        run.device_ids = tuple(device.id for node in decision.nodes for device in node.devices)
        heapq.heappush(self._events, (self.now + run.left_s, number, f"ended {run.attempt}"))

    def _happen(self, number: int, what: str) -> None:
        if what == "submitted":
            self._waiting.add(number)
        elif what == "contact":
            closed = None if self.hosts[number].closed else "out of contact"
            self.hosts[number] = replace(self.hosts[number], closed=closed)
        elif what == "stopped" or what == f"ended {self.runs[number].attempt}":
            self._end(number, stopped=what == "stopped")

    def _end(self, number: int, *, stopped: bool) -> None:
        run = self.runs[number]
        if number not in self._running:
            return  # it ended by itself while it was being stopped
        self._running.discard(number)
        took = self.now - run.began
        self.longest_run_s = max(self.longest_run_s, took)
        for account in laws.accounts(run.job.user, run.job.labels):
            self._used[account] += int(len(run.device_ids) * took)
        run.device_ids, run.is_stopping = (), False
        if stopped and run.left_s > took:
            run.left_s -= took
            run.restarts.append(self.now)
            self._waiting.add(number)
        else:
            run.ended = self.now

    def _open_one(self) -> None:
        """A host that is out of contact comes back in the end, or jobs would rightly wait for ever."""
        closed = [at for at, host in enumerate(self.hosts) if host.closed]
        if closed:
            heapq.heappush(self._events, (self.now + 1, closed[0], "contact"))

    def _draw_traffic(self) -> Traffic:
        draws = self._draws
        return Traffic(
            is_honest=draws.random() < 0.5,
            is_crowded=draws.random() < 0.2,
            preempts=draws.random() < 0.4,
            closes=draws.random() < 0.2,
            has_quotas=draws.random() < 0.3,
            policy=Policy(
                ageing_s=draws.choice([0.01, 0.1, 1.0]),
                fair_share_s=draws.choice([0.0, 0.0, 20.0]),
                reservations=draws.choice([1, 4, 64]),
            ),
        )

    def _draw_hosts(self) -> list[Host]:
        hosts = []
        for at in range(self._draws.randint(1, 3)):
            names = [f"cuda:{index}" for index in range(self._draws.randint(2, 4))] + ["cpu:0", "cpu:1"]
            devices = [Device(10 * at + index, name, name.partition(":")[0]) for index, name in enumerate(names)]
            hosts.append(Host("abc"[at], tuple(devices)))
        return hosts

    def _draw_job(self, number: int) -> Run:
        """A job that these hosts can run, within the quotas."""
        draws = self._draws
        whole = min(sum(device.kind == "cuda" for device in host.devices) for host in self.hosts)
        nodes = draws.choice([1, 1, 1, len(self.hosts)])
        per_node = 1 if nodes > 2 else draws.choice([1, 1, 1, 2, whole // nodes])
        if self.traffic.is_crowded and draws.random() < 0.8:
            nodes = per_node = 1
        device: str | DeviceCount = DeviceCount(count=per_node)
        if draws.random() < 0.3:
            device = ",".join(f"cuda:{index}" for index in draws.sample(range(whole), per_node))
        elif draws.random() < 0.1:
            device, per_node = "cpu", min(per_node, 2)
        request = Request(device=device, per_node=per_node, nodes=nodes)
        lasts = draws.choice([1.0, 5.0, 20.0]) * draws.uniform(0.5, 2)
        if self.traffic.is_honest:
            foretold: float | None = lasts * draws.choice([1.0, 1.0, 1.3])
        else:
            foretold = draws.choice([None, lasts, lasts * 0.3, lasts * 3])
        job = WaitingJob(
            id=number,
            priority=draws.choice([0, 50, 50, 100]),
            waits_from=draws.uniform(0, draws.choice([1, 50, 150]) if not self.traffic.is_crowded else 200),
            request=request,
            user=draws.choice(["ann", "bob", None]),
            labels=draws.choice([{}, {"team": "vision"}]),
            duration_s=foretold,
        )
        return Run(job, self.traffic.preempts and draws.random() < 0.5, lasts, foretold)
