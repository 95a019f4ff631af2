"""Pools: devices that are alike for some requests, and the hosts where they are free, or will be first."""

import heapq
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence

from jobs.planner.slots import Model, Slot

Rank = tuple[float, int, int, int, int]
"""How good a host is to wait for: when its devices are expected (infinity where that is unknown), of how many it is
unknown, how many jobs wait for them, how many are not free, and its number."""


class Pool(ABC):
    """The devices that some requests may use, by host.

    `changes` counts for each host how often a device of it was taken, set aside or booked; its owner keeps it up to
    date.
    """

    def __init__(self, hosts: Iterable[int], changes: Sequence[int]) -> None:
        self._hosts = hosts
        self._changes = changes
        self._large_enough: dict[int, list[int]] = {}
        self._rankings: dict[int, list[tuple[Rank, int]]] = {}

    @abstractmethod
    def slots_on(self, host: int) -> Sequence[Slot]:
        """The devices on a host, busy or not, in the order in which they are handed out."""

    @abstractmethod
    def includes(self, slot: Slot) -> bool:
        """Whether a device is one of them."""

    @abstractmethod
    def best_fit(self, per_node: int, nodes: int, allowed: Sequence[int] | None) -> list[int]:
        """Return up to `nodes` hosts where enough devices are loose: the fewest first, so that others stay whole."""

    def hosts_with(self, per_node: int, allowed: Iterable[int] | None) -> list[int]:
        """The hosts that have enough devices, busy or not."""
        if allowed is not None:
            return [host for host in allowed if len(self.slots_on(host)) >= per_node]
        if per_node not in self._large_enough:
            self._large_enough[per_node] = [host for host in self._hosts if len(self.slots_on(host)) >= per_node]
        return self._large_enough[per_node]

    def soonest(self, per_node: int, nodes: int, allowed: Sequence[int] | None) -> list[int]:
        """Return the `nodes` hosts, or fewer where there are not as many, whose devices are expected first."""
        if allowed is not None:
            ranks = heapq.nsmallest(nodes, (self._rank(host, per_node) for host in self.hosts_with(per_node, allowed)))
            return [rank[-1] for rank in ranks]
        ranking = self._rankings.get(per_node)
        if ranking is None:
            hosts = self.hosts_with(per_node, None)
            ranking = self._rankings[per_node] = [(self._rank(host, per_node), self._changes[host]) for host in hosts]
            heapq.heapify(ranking)
        fresh: list[tuple[Rank, int]] = []
        while ranking and len(fresh) < nodes:
            rank, changes = ranking[0]
            host = rank[-1]
            if changes == self._changes[host]:
                fresh.append(heapq.heappop(ranking))
            else:  # a host that changed has become worse, so the best of those that did not is found
                heapq.heapreplace(ranking, (self._rank(host, per_node), self._changes[host]))
        for entry in fresh:
            heapq.heappush(ranking, entry)
        return [rank[-1] for rank, _changes in fresh]

    def _rank(self, host: int, per_node: int) -> Rank:
        start, unknown, claims, busy = -math.inf, 0, 0, 0
        for slot in soonest_of(self.slots_on(host), per_node):
            start = max(start, slot.free_at)
            unknown += slot.free_at == math.inf
            claims += slot.claims
            busy += not slot.is_loose
        return (start, unknown, claims, busy, host)


class ModelPool(Pool):
    """All devices of some models.

    It knows of each host how many of them are loose, that is free and set aside for nobody. A plan asks for thousands
    of jobs, so no answer may take a walk through all hosts.
    """

    def __init__(self, models: frozenset[Model], slots: Mapping[int, Sequence[Slot]], changes: Sequence[int]) -> None:
        super().__init__(slots, changes)
        self._slots = slots
        self._models = models
        self.loose = {host: sum(slot.is_loose for slot in found) for host, found in slots.items()}
        most = max(map(len, slots.values()), default=0)
        # Hosts by their number of loose devices; an entry that is out of date is dropped when it comes up.
        self._by_loose: list[list[int]] = [[] for _ in range(most + 1)]
        for host, count in sorted(self.loose.items()):
            self._by_loose[count].append(host)

    def slots_on(self, host: int) -> Sequence[Slot]:
        return self._slots.get(host, ())

    def includes(self, slot: Slot) -> bool:
        return slot.model in self._models

    def note_loss(self, slot: Slot) -> None:
        """Note that a device is loose no more."""
        self.loose[slot.host] = count = self.loose[slot.host] - 1
        heapq.heappush(self._by_loose[count], slot.host)

    def best_fit(self, per_node: int, nodes: int, allowed: Sequence[int] | None) -> list[int]:
        if allowed is not None:
            enough = [host for host in allowed if self.loose.get(host, 0) >= per_node]
            return sorted(enough, key=lambda host: (self.loose[host], host))[:nodes]
        found: list[int] = []
        for count in range(per_node, len(self._by_loose)):
            found += self._with_loose(count, nodes - len(found))
            if len(found) == nodes:
                break
        return found

    def _with_loose(self, count: int, most: int) -> list[int]:
        """Return up to so many hosts with exactly `count` loose devices, by number."""
        heap, fresh = self._by_loose[count], list[int]()
        while heap and len(fresh) < most:
            host = heapq.heappop(heap)
            if self.loose[host] == count:
                fresh.append(host)
        for host in fresh:
            heapq.heappush(heap, host)
        return fresh


class ListPool(Pool):
    """The devices that lists name, in whatever order: a host has all of them, or is none of its hosts."""

    def __init__(
        self,
        names: frozenset[str],
        slots: Mapping[int, Mapping[str, Slot]],
        *,
        loose: Sequence[set[int]],
        kind: ModelPool,
        changes: Sequence[int],
    ) -> None:
        """`slots` are those of each host that has all of them, by name, `kind` all devices of that kind.

        `loose` holds for each name the hosts on which that device is loose, and is kept up to date by its owner.
        """
        super().__init__(slots, changes)
        self._names = names
        self._in_order = sorted(names, key=lambda name: (len(name), name))
        self._slots = {host: [found[name] for name in self._in_order] for host, found in slots.items()}
        self._loose = loose
        self._kind = kind

    def slots_on(self, host: int) -> Sequence[Slot]:
        return self._slots.get(host, ())

    def includes(self, slot: Slot) -> bool:
        return slot.device.name in self._names and slot.host in self._slots

    def best_fit(self, per_node: int, nodes: int, allowed: Sequence[int] | None) -> list[int]:
        assert per_node == len(self._names), "a list names the devices of one node"
        ready = set.intersection(*self._loose)
        if allowed is not None:
            ready.intersection_update(allowed)
        count = self._kind.loose
        if nodes > 1 or not ready:
            return heapq.nsmallest(nodes, ready, key=lambda host: (count[host], host))
        fewest = min(map(count.__getitem__, ready))
        return [min(host for host in ready if count[host] == fewest)]


def soonest_of(slots: Sequence[Slot], number: int) -> list[Slot]:
    """Return those of a host's devices that are expected first, in the order in which they are handed out."""
    if number >= len(slots):
        return list(slots)
    chosen = sorted(
        range(len(slots)), key=lambda at: (slots[at].free_at, slots[at].claims, not slots[at].is_loose, at)
    )[:number]
    return [slots[at] for at in sorted(chosen)]
