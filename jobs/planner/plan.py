"""The plan: who starts now and where, who waits for whom, who is stopped for whom."""

from collections.abc import Sequence
from itertools import groupby

from jobs.planner import reasons, reservations
from jobs.planner.demand import Demand, Demands
from jobs.planner.fleet import UNKNOWN, Fleet
from jobs.planner.heads import Heads
from jobs.planner.order import in_line, is_resting
from jobs.planner.preemption import Preemption
from jobs.planner.quotas import Quotas
from jobs.planner.slots import Slot
from jobs.planner.view import Decision, Node, Preempt, Scene, Start, Wait, WaitingJob

MOST_FORESEEN = 256
"""For so many of the jobs that wait for devices it is worked out for which, and from when on."""


def plan(scene: Scene) -> list[Decision]:
    """Decide for every waiting job, in the order of the line, whether it starts now and where, or what it waits for."""
    return _Plan(scene).decide()


class _Plan:
    """One plan in the making.

    Each job is decided upon once, in the order of the line. What one gets, or has set aside, those after it do not.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._fleet = Fleet(scene)
        self._demands = Demands(self._fleet, scene.hosts)
        self._quotas = Quotas(scene.quotas, scene.running)
        self._preemption = Preemption(scene, self._fleet)
        self._heads = Heads(scene.policy.reservations)
        self._blocked = 0
        """Jobs so far that wait for devices."""

    def decide(self) -> list[Decision]:
        decisions: list[Decision] = []
        for line_key, job in in_line(self._scene, self._fleet):
            decisions += self._decide(job, line_key)
        return decisions

    def _decide(self, job: WaitingJob, line_key: float) -> Sequence[Decision]:
        if is_resting(job, self._scene.now):
            assert job.not_before is not None
            return [Wait(job.id, reasons.resting(job.not_before), line_key)]
        demand = self._demands.of(job)
        if demand.is_out_of_reach:
            # It is in nobody's way meanwhile. But a heartbeat that was missed must not cost it what was gathered there.
            kept = job.reservation if self._fleet.is_out_of_contact(job.reservation) else None
            return [Wait(job.id, self._demands.refuse(demand), line_key, reservation=kept)]
        ends = UNKNOWN if job.duration_s is None else self._scene.now + job.duration_s
        refusal = self._quotas.refuse(job, ends)
        if refusal is not None:
            return [Wait(job.id, refusal, line_key)]
        slots = reservations.ready(demand.kept(job.reservation), ends) or demand.place(ends)
        if slots is not None:
            return [self._start(job, demand, slots, ends)]
        self._blocked += 1
        is_settled = reservations.is_settled(job, demand)
        if is_settled or self._heads.has_room_for(demand):
            return self._reserve(job, demand, line_key, was_settled=is_settled)
        if self._blocked > MOST_FORESEEN:
            return [Wait(job.id, demand.far_back, line_key)]
        return self._foresee(job, demand, line_key)

    def _start(self, job: WaitingJob, demand: Demand, slots: list[Slot], ends: float) -> Start:
        for slot in slots:
            self._fleet.take(slot, job.id, ends)
        self._quotas.charge(job)
        nodes = []
        for host, found in groupby(slots, key=lambda slot: slot.host):
            devices = tuple(slot.device for slot in demand.in_rank_order(list(found)))
            nodes.append(Node(self._fleet.hosts[host].name, devices))
        return Start(job.id, tuple(nodes))

    def _foresee(self, job: WaitingJob, demand: Demand, line_key: float) -> list[Decision]:
        slots = demand.soonest()
        reason, holders = reasons.in_the_way(slots, self._fleet.hosts, job)
        start = reservations.book(self._fleet, slots, job)
        return [Wait(job.id, reason, line_key, start, holders)]

    def _reserve(self, job: WaitingJob, demand: Demand, line_key: float, *, was_settled: bool) -> list[Decision]:
        choice = reservations.choose(self._fleet, job, demand, self._preemption)
        if not was_settled:
            self._heads.add(demand, is_settled=choice.preempts)
        reason, holders = reasons.in_the_way(choice.slots, self._fleet.hosts, job)
        start, reservation = reservations.make(self._fleet, choice, job)
        self._quotas.keep_turn(job, reservation.start)
        preempts = [Preempt(victim.id, victim.attempt, job.id) for victim in choice.victims]
        return [*preempts, Wait(job.id, reason, line_key, start, holders, reservation)]
