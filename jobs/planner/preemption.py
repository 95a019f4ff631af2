"""Preemption: whose run is stopped for a job of higher priority, and which devices that gives it."""

from dataclasses import dataclass

from jobs.planner.demand import Demand
from jobs.planner.fleet import Fleet
from jobs.planner.slots import Slot
from jobs.planner.view import RunningJob, Scene, WaitingJob


@dataclass(frozen=True)
class Clearing:
    """Devices that come free as soon as some jobs have stopped."""

    slots: list[Slot]
    """Node by node."""
    victims: list[RunningJob]
    """Jobs to be told so; none where those in the way are stopping already."""


class Preemption:
    """The jobs that may be stopped: of lowest priority first, then those that lose least, then the newest."""

    def __init__(self, scene: Scene, fleet: Fleet) -> None:
        self.patience_s = scene.policy.patience_s
        """Nobody is stopped for a job that is foretold to start within so many seconds anyhow."""
        self._fleet = fleet
        candidates = [job for job in scene.running if job.preemptible and not job.is_stopping]
        candidates.sort(key=lambda job: (job.priority, -job.saved_at, -job.id))
        self._candidates = [(job, fleet.held_by(job)) for job in candidates]
        self._stopped: set[int] = set()
        self._leaving = {slot.host for job in scene.running if job.is_stopping for slot in fleet.held_by(job)}

    def clear(self, job: WaitingJob, demand: Demand) -> Clearing | None:
        """Find devices for a job that has to wait, and tell those in the way to leave. None where that does not help.

        Only what is set aside for nobody counts: a job never gets, by this, what one before it in the line waits for.
        """
        if job.priority <= demand.unpreempted or not (self._leaving or self._candidates):
            return None
        found = _Search(demand, self._leaving)
        for victim, slots in self._candidates:
            if found.is_enough or victim.priority >= job.priority:
                break
            if victim.id not in self._stopped:
                found.add(victim, slots)
        if not found.is_enough:
            demand.unpreempted = job.priority
            return None
        clearing = found.conclude()
        for victim in clearing.victims:
            for slot in self._fleet.held_by(victim):
                slot.leave(self._fleet.now, job.id)
                self._leaving.add(slot.host)
            self._stopped.add(victim.id)
        return clearing


class _Search:
    """Victims are added, the cheapest first, until enough hosts are clear; then those not needed are spared."""

    def __init__(self, demand: Demand, leaving: set[int]) -> None:
        """`leaving` are the hosts with devices of jobs that stop already."""
        self._demand = demand
        self._victims: list[tuple[RunningJob, list[Slot]]] = []
        self._clear: dict[int, set[Slot]] = {}
        """By host, the devices that are or will be free."""
        self._hosts = demand.pool.best_fit(demand.per_node, demand.nodes, demand.allowed)
        for host in sorted(leaving):
            if demand.allows(host) and host not in self._hosts:
                self._look_at(host)

    @property
    def is_enough(self) -> bool:
        return len(self._hosts) >= self._demand.nodes

    def add(self, victim: RunningJob, slots: list[Slot]) -> None:
        """Count the devices that a job would leave."""
        useful = [slot for slot in slots if self._is_useful(slot)]
        if not useful:
            return
        self._victims.append((victim, useful))
        for slot in useful:
            if slot.host not in self._clear:
                self._look_at(slot.host)
            self._clear[slot.host].add(slot)
            self._count(slot.host)

    def conclude(self) -> Clearing:
        """Return the hosts that were clear first, and whom that takes."""
        hosts = self._hosts[: self._demand.nodes]
        for host in hosts:
            if host not in self._clear:
                self._look_at(host)
        needed = []
        for victim, slots in reversed(self._victims):
            without = {host: self._clear[host].difference(slots) for host in hosts}
            if all(len(clear) >= self._demand.per_node for clear in without.values()):
                self._clear.update(without)
            else:
                needed.append(victim)
        return Clearing([slot for host in sorted(hosts) for slot in self._choose(host)], needed[::-1])

    def _is_useful(self, slot: Slot) -> bool:
        return slot.kept_for is None and self._demand.allows(slot.host) and self._demand.pool.includes(slot)

    def _look_at(self, host: int) -> None:
        slots = self._demand.pool.slots_on(host)
        self._clear[host] = {slot for slot in slots if slot.is_loose or (slot.is_leaving and slot.kept_for is None)}
        self._count(host)

    def _count(self, host: int) -> None:
        if len(self._clear[host]) >= self._demand.per_node and host not in self._hosts:
            self._hosts.append(host)

    def _choose(self, host: int) -> list[Slot]:
        """The devices on a host: those that are free before those that others are still to leave."""
        clear = [slot for slot in self._demand.pool.slots_on(host) if slot in self._clear[host]]
        order = sorted(range(len(clear)), key=lambda at: (not clear[at].is_loose, not clear[at].is_leaving, at))
        return [clear[at] for at in sorted(order[: self._demand.per_node])]
