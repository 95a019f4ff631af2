"""The simulation itself: a clock that jumps from change to change, and a plan after each."""

import heapq
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import inf

from jobs.planner.plan import plan
from jobs.planner.view import Decision, Host, Policy, Preempt, Quota, RunningJob, Scene, Start, Wait, WaitingJob
from jobs.simulation.bounds import Bounds
from jobs.simulation.fleet import Fleet
from jobs.simulation.laws import check_plan
from jobs.simulation.stream import StreamJob
from jobs.simulation.tally import Started, Tally
from jobs.simulation.usage import Usage


@dataclass(frozen=True)
class Rules:
    """How the simulated service goes about it. Times are in seconds."""

    policy: Policy = field(default_factory=Policy)
    quotas: tuple[Quota, ...] = ()
    tick_s: float = 60.0
    """Two plans are at least so far apart; jobs arrive and end in between, each at its own time."""
    stop_s: float = 15.0
    """How long a preempted job takes to save and let go of its devices."""
    save_every_s: float = 1800.0
    """How often a running job saves a checkpoint: the planner looks at how long ago that was."""
    fair_share_half_life_s: float = 86_400.0


@dataclass(slots=True)
class _Live:
    """A job that has its devices."""

    job: StreamJob
    waited: WaitingJob
    """As it stood in the line, where it goes back to if it is stopped."""
    began_s: float
    left_s: float
    """What it had to do when it began."""
    view: RunningJob
    stop_ordered_s: float | None = None


class Simulation:
    """A stream on its way through a fleet. Job ids count from 1, in the order of the stream."""

    def __init__(
        self,
        stream: Sequence[StreamJob],
        hosts: Sequence[Host],
        rules: Rules,
        *,
        cpu_clock: Callable[[], float] = time.process_time,
    ) -> None:
        """`stream` is in order of submission; `cpu_clock` tells what a plan takes, in seconds."""
        self.stream = stream
        self.fleet = Fleet(hosts)
        self.rules = rules
        self.tally = Tally()
        self.now = 0.0
        self.waiting: dict[int, WaitingJob] = {}
        self.decisions: Sequence[Decision] = ()
        """The last plan."""
        self._cpu_clock = cpu_clock
        self._arrived = 0
        self._blocked = 0
        """Jobs that the last plan left waiting: others wait for the next one only."""
        self._live: dict[int, _Live] = {}
        self._ends: list[tuple[float, bool, int, int]] = []
        """A heap: when, whether by an order to stop, and which attempt of which job. Of two for one attempt, the later
        has nothing to end any more."""
        self._attempts: dict[int, int] = {}
        self._left_s: dict[int, float] = {}
        """What those that were stopped have still to do."""
        self._usage = Usage(rules.quotas, half_life_s=rules.fair_share_half_life_s)
        self._bounds = Bounds(stream, rules.policy, slack_s=rules.stop_s + 2 * rules.tick_s)

    def run(self, *, goes_on: Callable[[], bool] = lambda: True) -> None:
        """Let everything happen, until nothing more does or `goes_on` says no; it is asked before each plan.

        Raises BrokenPlanError as soon as a plan breaks a law.
        """
        planned = -inf
        while goes_on() and (change := self._next_change()) < inf:
            planned = max(change, planned + self.rules.tick_s)
            self._pass_until(planned)
            if self.waiting:
                self._plan()
            self._blocked = len(self.waiting)

    @property
    def submitted(self) -> int:
        """Jobs of the stream that have been submitted."""
        return self._arrived

    def _next_change(self) -> float:
        arrival = self.stream[self._arrived].submitted_s if self._arrived < len(self.stream) else inf
        return min(arrival, self._ends[0][0] if self._ends else inf)

    def _pass_until(self, moment: float) -> None:
        """Let jobs arrive and end, each at its own time."""
        while (change := self._next_change()) <= moment:
            self._go_to(change)
            if self._ends and self._ends[0][0] == change:
                _, is_stopped, job_id, attempt = heapq.heappop(self._ends)
                if job_id in self._live and self._attempts[job_id] == attempt:
                    self._end(job_id, is_stopped=is_stopped)
            else:
                self._arrive()
        self._go_to(moment)

    def _go_to(self, moment: float) -> None:
        self.tally.advance(moment - self.now, held=self.fleet.held, blocked=self._blocked)
        self.now = moment

    def _arrive(self) -> None:
        job = self.stream[self._arrived]
        self._arrived += 1
        waiting = WaitingJob(
            self._arrived, job.priority, job.submitted_s, job.request, job.user, job.labels, job.limit_s
        )
        self.waiting[waiting.id] = waiting
        self._bounds.arrive(waiting)

    def _end(self, job_id: int, *, is_stopped: bool) -> None:
        """Free the devices of a job that is done, or that was told to stop and has saved."""
        live = self._live.pop(job_id)
        self.fleet.release(live.view.device_ids)
        self._usage.hold(live.job.user, live.job.labels, -len(live.view.device_ids), at=self.now)
        if not is_stopped:
            self.tally.ended += 1
            return
        assert live.stop_ordered_s is not None, "no job stops without an order"
        left_s = live.left_s - (live.stop_ordered_s - live.began_s)
        self._left_s[job_id] = left_s
        # It keeps its place in the line.
        self.waiting[job_id] = replace(live.waited, duration_s=foretold_s(live.job, left_s), reservation=None)
        self._bounds.come_back(job_id)

    def _plan(self) -> None:
        scene = Scene(
            now=self.now,
            waiting=tuple(self.waiting.values()),
            running=tuple(self._running()),
            hosts=self.fleet.hosts,
            quotas=self.rules.quotas,
            usage=self._usage.at(self.now),
            policy=self.rules.policy,
        )
        began = self._cpu_clock()
        decisions = plan(scene)
        self.tally.plan_s.append(self._cpu_clock() - began)
        self.decisions = decisions
        self.tally.backfilled += check_plan(scene, decisions)
        self._bounds.note(self.now, decisions)
        for decision in decisions:
            match decision:
                case Start():
                    self._start(decision)
                case Wait():
                    waiting = self.waiting[decision.job_id]
                    if decision.reservation != waiting.reservation:
                        self.waiting[waiting.id] = replace(waiting, reservation=decision.reservation)
                case Preempt():
                    self._stop(decision)

    def _running(self) -> list[RunningJob]:
        every_s = self.rules.save_every_s
        for live in self._live.values():
            saved_at = live.began_s + (self.now - live.began_s) // every_s * every_s
            # Nobody asks when those that nobody may stop have saved.
            if live.view.preemptible and live.view.saved_at != saved_at:
                live.view = replace(live.view, saved_at=saved_at)
        return [live.view for live in self._live.values()]

    def _start(self, decision: Start) -> None:
        waiting = self.waiting.pop(decision.job_id)
        job = self.stream[waiting.id - 1]
        device_ids = self.fleet.take(waiting.id, job.request, decision.nodes)
        self._usage.hold(job.user, job.labels, len(device_ids), at=self.now)
        attempt = self._attempts[waiting.id] = self._attempts.get(waiting.id, 0) + 1
        if attempt == 1:
            started = Started(waiting.id, job, self.now - job.submitted_s, self._bounds.of(waiting))
            self.tally.started.append(started)
        left_s = self._left_s.get(waiting.id, job.real_s)
        known_s = foretold_s(job, left_s)
        view = RunningJob(
            waiting.id,
            attempt,
            job.priority,
            device_ids,
            job.user,
            job.labels,
            preemptible=job.request.preemptible,
            saved_at=self.now,
            predicted_end=None if known_s is None else self.now + known_s,
        )
        self._live[waiting.id] = _Live(job, waiting, self.now, left_s, view)
        heapq.heappush(self._ends, (self.now + left_s, False, waiting.id, attempt))

    def _stop(self, decision: Preempt) -> None:
        live = self._live[decision.job_id]
        live.stop_ordered_s = self.now
        live.view = replace(live.view, is_stopping=True)
        heapq.heappush(self._ends, (self.now + self.rules.stop_s, True, decision.job_id, decision.attempt))
        self.tally.preemptions += 1


def foretold_s(job: StreamJob, left_s: float) -> float | None:
    """How long a job that has run, and has so much left to do, will still take by its pace or its limit."""
    done_s = job.real_s - left_s
    known_s = []
    if job.foretold_s is not None:
        known_s.append((job.runs_s - done_s) * job.foretold_s / job.runs_s)
    if job.limit_s is not None:
        known_s.append(job.limit_s - done_s)
    return min(known_s, default=None)
