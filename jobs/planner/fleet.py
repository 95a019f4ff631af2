"""The fleet while a plan is made: which devices are free, set aside or lent, and when the others come free."""

import math
from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property

from jobs.planner.matching import fits, has_accelerator, in_order_of_name, listed_names, pinned_host
from jobs.planner.pools import ListPool, ModelPool, Pool
from jobs.planner.request import Request
from jobs.planner.slots import Model, Slot
from jobs.planner.view import OUT_OF_CONTACT, Device, Host, Reservation, RunningJob, Scene

UNKNOWN = math.inf


class Fleet:
    """The devices of the open hosts. Within one plan they only become fewer: nothing that was taken comes free."""

    def __init__(self, scene: Scene) -> None:
        self.now = scene.now
        self._all_hosts = scene.hosts
        self.hosts: list[Host] = sorted(
            (host for host in scene.hosts if host.closed is None), key=lambda each: each.name
        )
        self._number_of = {host.name: number for number, host in enumerate(self.hosts)}
        self.lenders: set[int] = set()
        """Hosts with devices that are set aside, but free."""
        self._accelerated = has_accelerator(scene.hosts)
        self._slots: list[list[Slot]] = [_slots_of(host, number) for number, host in enumerate(self.hosts)]
        self._by_id = {slot.device.id: slot for slots in self._slots for slot in slots}
        for job in scene.running:
            for slot in self.held_by(job):
                slot.hold(job, _expected_end(job, scene.now))
        self._models = {slot.model: slot.device for slot in self._by_id.values()}
        self._model_pools: dict[frozenset[Model], ModelPool] = {}
        self._list_pools: dict[frozenset[str], ListPool] = {}
        self._pools_of = defaultdict[Model, list[ModelPool]](list)
        self._changes = [0] * len(self.hosts)

    def __contains__(self, device_id: object) -> bool:
        return device_id in self._by_id

    def find(self, device_ids: Iterable[int]) -> list[Slot] | None:
        """Return these devices, or None where one of them can not be handed out any more."""
        found = [self._by_id.get(device_id) for device_id in device_ids]
        known = [slot for slot in found if slot is not None]
        return known if len(known) == len(found) else None

    def is_out_of_contact(self, reservation: Reservation | None) -> bool:
        """Whether a reservation could be kept if only some of its hosts were not out of contact."""
        missing = [each for each in reservation.device_ids if each not in self] if reservation is not None else []
        return bool(missing) and self._silent.issuperset(missing)

    def held_by(self, job: RunningJob) -> list[Slot]:
        """Return the devices of a running job that are on open hosts."""
        return [self._by_id[device_id] for device_id in job.device_ids if device_id in self._by_id]

    def allowed_hosts(self, request: Request, resumes_on: frozenset[str] | None) -> list[int] | None:
        """The open hosts that a request is limited to; None where any will do."""
        pinned = pinned_host(request)
        if pinned is None and resumes_on is None:
            return None
        names = {pinned} if pinned is not None else set(resumes_on or ())
        if resumes_on is not None:
            names &= resumes_on
        return sorted(self._number_of[name] for name in names if name in self._number_of)

    def pool_for(self, request: Request) -> Pool:
        """The devices that a request may use, hosts aside."""
        names = listed_names(request)
        if names is not None:
            return self._list_pool(frozenset(names))
        models = frozenset(
            model for model, device in self._models.items() if fits(device, request, accelerated=self._accelerated)
        )
        return self._model_pool(models)

    def take(self, slot: Slot, job_id: int, until: float) -> None:
        """Give a device to a job that starts."""
        was_loose = slot.is_loose
        slot.take(job_id, until)
        self._changed(slot, was_loose=was_loose)

    def set_aside(
        self, slot: Slot, job_id: int, *, start: float | None, until: float, unforeseeable: int | None
    ) -> None:
        """Keep a device for a job that is to start at `start`, if known, and to end at `until`."""
        was_loose = slot.is_loose
        slot.set_aside(job_id, start=start, until=until, unforeseeable=unforeseeable)
        if not slot.is_taken:
            self.lenders.add(slot.host)
        self._changed(slot, was_loose=was_loose)

    def book(self, slot: Slot, until: float, unforeseeable: int | None) -> None:
        """Foretell that a device is in use until then, without keeping it for anybody."""
        slot.book(until, unforeseeable)
        self._changed(slot, was_loose=False)

    def _changed(self, slot: Slot, *, was_loose: bool) -> None:
        self._changes[slot.host] += 1
        if not was_loose or slot.is_loose:
            return
        for pool in self._pools_of.get(slot.model, ()):
            pool.note_loss(slot)
        if "_loose_by_name" in self.__dict__:
            self._loose_by_name[slot.device.name].discard(slot.host)

    def _model_pool(self, models: frozenset[Model]) -> ModelPool:
        found = self._model_pools.get(models)
        if found is None:
            matching = (
                (host, [slot for slot in slots if slot.model in models]) for host, slots in enumerate(self._slots)
            )
            found = ModelPool(models, {host: slots for host, slots in matching if slots}, self._changes)
            self._model_pools[models] = found
            for model in models:
                self._pools_of[model].append(found)
        return found

    def _list_pool(self, names: frozenset[str]) -> ListPool:
        found = self._list_pools.get(names)
        if found is None:
            kind = min(names).partition(":")[0]
            alike = self._model_pool(frozenset(model for model in self._models if model[0] == kind))
            loose = [self._loose_by_name[name] for name in names]
            hosts = set.intersection(*(self._hosts_by_name[name] for name in names))
            slots = {host: self._by_name[host] for host in sorted(hosts)}
            found = ListPool(names, slots, loose=loose, kind=alike, changes=self._changes)
            self._list_pools[names] = found
        return found

    @cached_property
    def _silent(self) -> set[int]:
        """The devices of hosts that are out of contact."""
        silent = (host for host in self._all_hosts if host.closed == OUT_OF_CONTACT)
        return {device.id for host in silent for device in host.devices if not device.quarantined}

    @cached_property
    def _by_name(self) -> list[dict[str, Slot]]:
        """The devices of each host, for requests that name them."""
        return [{slot.device.name: slot for slot in found} for found in self._slots]

    @cached_property
    def _hosts_by_name(self) -> defaultdict[str, set[int]]:
        """For each name the hosts that have that device, so that names which none has cost no look at each of them."""
        hosts = defaultdict[str, set[int]](set)
        for host, found in enumerate(self._by_name):
            for name in found:
                hosts[name].add(host)
        return hosts

    @cached_property
    def _loose_by_name(self) -> defaultdict[str, set[int]]:
        """For each name the hosts on which that device is free and set aside for nobody."""
        hosts = defaultdict[str, set[int]](set)
        for slot in self._by_id.values():
            if slot.is_loose:
                hosts[slot.device.name].add(slot.host)
        return hosts


def _slots_of(host: Host, number: int) -> list[Slot]:
    usable: list[Device] = [device for device in host.devices if not device.quarantined]
    return [Slot(device, number) for device in in_order_of_name(usable)]


def _expected_end(job: RunningJob, now: float) -> float:
    """When its devices come free, as far as that is known: one that stops, at any moment, whatever it was to train
    yet; one that should have ended already says nothing."""
    if job.is_stopping:
        return now
    if job.predicted_end is None or job.predicted_end <= now:
        return UNKNOWN
    return job.predicted_end
