"""A demand: the jobs that ask for the same on the same hosts, and what the fleet can give them."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain

from jobs.planner import reasons
from jobs.planner.fleet import UNKNOWN, Fleet
from jobs.planner.matching import listed_names
from jobs.planner.pools import soonest_of
from jobs.planner.request import Request
from jobs.planner.slots import Slot
from jobs.planner.view import Host, Reservation, WaitingJob

MOST_EXPLAINED = 64
"""For so many requests that no open host can serve, the first in the line, a plan works out why."""


class Demand:
    """What jobs with one request wait for.

    Devices only become fewer within a plan, so what one of these jobs could not get, none that comes after it gets
    either: thousands that ask for the same cost no search each.
    """

    def __init__(self, fleet: Fleet, hosts: Sequence[Host], job: WaitingJob) -> None:
        request = job.request
        self.per_node, self.nodes = request.per_node, request.nodes
        self.allowed = fleet.allowed_hosts(request, job.resumes_on)
        self.pool = fleet.pool_for(request)
        self.note = job.resume_note
        self.unpreempted = -1
        """The highest priority for which stopping others was tried and did not help."""
        self.is_behind_a_head = False
        """Whether a job before these is known to have devices set aside and may use some that these may use."""
        self._request = request
        self._resumes_on = job.resumes_on
        self._names = listed_names(request)
        self.is_out_of_reach = len(self.pool.hosts_with(self.per_node, self.allowed)) < self.nodes
        """Whether none of these jobs can run on the open hosts."""
        self._fleet = fleet
        self._hosts = hosts
        self._nothing_is_loose = False
        self._in_vain_until = UNKNOWN
        """Jobs that end then or later find nothing."""

    @cached_property
    def far_back(self) -> str:
        """Why a job waits whose turn is too far off to say for what."""
        return reasons.far_back(self._request, self.note)

    @cached_property
    def why_out_of_reach(self) -> str:
        """Why none of these jobs can run on the open hosts, which takes a look at every device."""
        return reasons.no_host(self._request, self._hosts, self._resumes_on, self.note)

    @cached_property
    def out_of_reach(self) -> str:
        """That none of these jobs can run on the open hosts."""
        return reasons.no_open_host(self._request, self.note)

    def allows(self, host: int) -> bool:
        """Whether these jobs may run on a host, if it has the devices."""
        return self.allowed is None or host in self.allowed

    def candidates(self) -> Iterator[Slot]:
        """Every device that one of these jobs may use, busy or not."""
        return chain.from_iterable(map(self.pool.slots_on, self.pool.hosts_with(self.per_node, self.allowed)))

    def in_rank_order(self, slots: list[Slot]) -> list[Slot]:
        """Order the devices of one node as the request lists them."""
        by_name = {slot.device.name: slot for slot in slots}
        return slots if self._names is None else [by_name[name] for name in self._names]

    def place(self, ends: float) -> list[Slot] | None:
        """Return devices on which a job can start that ends then, node by node, or None."""
        if self._nothing_is_loose and ends >= self._in_vain_until:
            return None
        hosts = [] if self._nothing_is_loose else self.pool.best_fit(self.per_node, self.nodes, self.allowed)
        if len(hosts) < self.nodes:
            self._nothing_is_loose = True
            hosts = self._lending_hosts(ends)
        if len(hosts) < self.nodes:
            self._in_vain_until = min(self._in_vain_until, ends)
            return None
        return [slot for host in sorted(hosts) for slot in self._pick(host, ends)]

    def kept(self, reservation: Reservation | None) -> list[Slot] | None:
        """Return the devices that were set aside for a job of this kind, node by node, or None where they no longer
        serve it."""
        found = self._fleet.find(reservation.device_ids) if reservation is not None else None
        if found is None or len(found) != self.nodes * self.per_node:
            return None
        nodes = [found[at : at + self.per_node] for at in range(0, len(found), self.per_node)]
        hosts = {node[0].host for node in nodes}
        if len(hosts) != self.nodes or not all(self.allows(host) for host in hosts):
            return None
        whole = all(set(node).issubset(self.pool.slots_on(node[0].host)) for node in nodes)
        return found if whole and len(set(found)) == len(found) else None

    def soonest(self) -> list[Slot]:
        """Return the devices that are expected to be free first, node by node."""
        hosts = self.pool.soonest(self.per_node, self.nodes, self.allowed)
        return [slot for host in sorted(hosts) for slot in soonest_of(self.pool.slots_on(host), self.per_node)]

    def _lending_hosts(self, ends: float) -> list[int]:
        """The best hosts for a job that ends in time to use what is set aside for others."""
        if ends == UNKNOWN:
            return []
        lenders = self._fleet.lenders if self.allowed is None else self._fleet.lenders.intersection(self.allowed)
        usable = {host: sum(slot.can_be_used_until(ends) for slot in self.pool.slots_on(host)) for host in lenders}
        found = [(count, host) for host, count in usable.items() if count >= self.per_node]
        whole = self.pool.best_fit(self.per_node, self.nodes + len(found), self.allowed)
        found += [(self.per_node, host) for host in whole if host not in usable]
        return [host for _count, host in sorted(found)[: self.nodes]]

    def _pick(self, host: int, ends: float) -> list[Slot]:
        usable = [slot for slot in self.pool.slots_on(host) if slot.can_be_used_until(ends)]
        chosen = sorted(range(len(usable)), key=lambda at: (not usable[at].is_loose, at))[: self.per_node]
        return [usable[at] for at in sorted(chosen)]


class Demands:
    """The demands of a plan. Equal requests share one."""

    def __init__(self, fleet: Fleet, hosts: Sequence[Host]) -> None:
        self._fleet = fleet
        self._hosts = hosts
        self._known: dict[object, Demand] = {}
        self._explained: set[Demand] = set()

    def of(self, job: WaitingJob) -> Demand:
        """Return the demand of a job."""
        # By identity first: hashing a request costs more than all else that is done for most jobs.
        quick = (id(job.request), job.resumes_on, job.resume_note)
        found = self._known.get(quick)
        if found is None:
            request: Request = job.request
            key = (request.device, request.per_node, request.nodes, request.host, job.resumes_on, job.resume_note)
            found = self._known.get(key) or Demand(self._fleet, self._hosts, job)
            self._known[quick] = self._known[key] = found
        return found

    def refuse(self, demand: Demand) -> str:
        """Say why the jobs of a demand that is out of reach can not run; only that, once many were told why."""
        if demand not in self._explained and len(self._explained) == MOST_EXPLAINED:
            return demand.out_of_reach
        self._explained.add(demand)
        return demand.why_out_of_reach
