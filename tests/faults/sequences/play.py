"""A play: one sequence of calls on a small service, each of them made on the store and on the model."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from typing import Any, ClassVar, TypeVar

import pytest
from hypothesis.stateful import RuleBasedStateMachine
from sqlalchemy import select
from sqlalchemy.orm import Session

from jobs.database import Database, now
from jobs.planning import plan_unless_planned
from jobs.spec import JobSpec
from jobs.store import attempts, endings, hosts, jobs, leases, maintenance
from jobs.store.hosts import DeviceInfo
from jobs.tables import Job, Placement
from tests.faults.sequences.ledger import Ledger
from tests.faults.sequences.model import Fault, ModelDevice, ModelHost, ModelJob, Share, Shipment
from tests.faults.sequences.reckoning import Reckoning
from trainer.errors import Cause
from trainer.journal import CheckpointSaved, Completed, EpochEnd, Metrics, Record, Started
from worker.shipping import store_records

HOSTS = ("alpha", "beta")
DEVICES = ("cuda:0", "cuda:1")
KINDS: dict[str, dict[str, Any]] = {
    "one device": {"device": "0"},
    "the other device": {"device": "1"},
    "any device": {"device": {"count": 1}},
    "two devices": {"device": "0,1"},
    "two hosts": {"device": "0", "nodes": 2},
    "two hosts, two devices each": {"device": "0,1", "nodes": 2},
    "a device that no host has": {"device": "7"},
}
FAULTS: dict[str, Fault | None] = {
    "complete": None,
    "its own fault": Fault(Cause.EXCEPTION, has_rank=True),
    "a rank was killed": Fault(Cause.KILLED_BY_SIGNAL, has_rank=True),
    "its peers are gone": Fault(Cause.COMMUNICATION, has_rank=True),
    "its supervisor died": Fault(Cause.LOST),
    "stopped in order": Fault(Cause.INTERRUPTED, spends_retry=False),
    "stopped by somebody": Fault(Cause.INTERRUPTED),
    "not begun": Fault(Cause.DISK_FULL, spends_retry=False),
}
"""Ways in which a placement ends."""
QUARANTINE_AFTER = 2
"""Losses in a row on one device; a setting, low enough for the sequences to come to it."""
Thing = TypeVar("Thing")


class Play(RuleBasedStateMachine):
    """Two hosts with two devices each, the jobs on them, and what all of that must be."""

    database: ClassVar[Database]
    ledger: ClassVar[Ledger]

    def __init__(self) -> None:
        super().__init__()
        self.ledger.empty()
        self.jobs: dict[int, ModelJob] = {}
        self.shares: list[Share] = []
        """Every placement there ever was."""
        self.fleet: dict[str, ModelHost] = {}
        self.reckoning = Reckoning(self.ledger)
        for name in HOSTS:
            self.fleet[name] = ModelHost("1:1@boot", {device: ModelDevice() for device in DEVICES})
            self.do(register(name, self.fleet[name].worker))

    @property
    def open(self) -> list[Share]:
        return [share for share in self.shares if share.is_open]

    @property
    def claimed(self) -> list[Share]:
        return [share for share in self.open if share.claimed]

    def do(self, call: Callable[[Session], Thing]) -> Thing:
        """Make a call in a transaction of its own."""
        with self.database.session_scope() as session:
            return call(session)

    def refuse(self, error: type[Exception], call: Callable[[Session], object]) -> None:
        """Make a call that must be refused, and then has changed nothing at all."""
        before = self.ledger.everything()
        with pytest.raises(error):
            self.do(call)
        assert self.ledger.everything() == before

    def submit_job(self, kind: str, *, priority: int, max_retries: int, preemptible: bool) -> None:
        spec = _spec(kind, priority, max_retries, preemptible)
        job_id = self.do(lambda session: jobs.submit(session, spec).job.id)
        count, nodes = spec.request.device_count, spec.request.nodes
        possible = kind != "a device that no host has"
        self.jobs[job_id] = ModelJob(job_id, nodes, count // nodes, priority, max_retries, preemptible, possible)

    def plan_once(self) -> None:
        """Plan, and take from the answer which jobs start: the model knows only which of them may."""
        started: dict[int, list[Share]] = {}
        for placement in self.do(_plan):
            job = self.jobs[placement.job_id]
            assert job.may_start(), f"job {job.id} was started: {job}"
            share = Share(job, placement)
            assert self.fleet[placement.host_name].is_open, f"job {job.id} was started on {placement.host_name}"
            assert len(share.devices) == job.devices_per_node
            assert not any(self._device(device).quarantined for device in share.devices)
            held = {device for other in self.open for device in other.devices}
            assert held.isdisjoint(share.devices), f"job {job.id} was given devices that others have"
            self.shares.append(share)
            started.setdefault(job.id, []).append(share)
        for job_id, shares in started.items():
            ranks = [share.placement.node_rank for share in shares]
            assert ranks == list(range(self.jobs[job_id].nodes)), "some of its hosts only"
            self.jobs[job_id].start(shares)
        self.reckoning.take_stop_orders(self.jobs)

    def expire(self) -> None:
        """End what has run out, as lost."""
        found = self.do(lambda session: leases.expired(session, now(session)))
        due = [share for share in self.open if share.run_out]
        assert [placement.id for placement in found] == [share.placement.id for share in due]
        for share in due:
            assert self.do(partial(endings.expire, placement=share.placement))
            # One that no supervisor ever had was not begun.
            self._ended(share, completed=False, fault=Fault(Cause.LOST, spends_retry=share.claimed))

    def end_rests(self) -> None:
        """Let so much time pass that no job rests any longer."""
        self.do(_end_rests)
        for job in self.jobs.values():
            job.rests = False

    def give_back(self, host_name: str, device: str) -> None:
        """Let a host, and one of its devices, have jobs again."""
        self.do(partial(maintenance.take_back, name=host_name))
        self.do(partial(maintenance.release, name=host_name, device=device))
        self.fleet[host_name].drained = False
        self.fleet[host_name].devices[device] = ModelDevice()

    def return_host(self, host_name: str) -> None:
        """Have a host report again, whatever became of it."""
        host = self.fleet[host_name]
        call = register if host.removed else beat
        self.do(call(host_name, host.worker))
        host.silent = host.removed = False

    def claim(self, share: Share) -> None:
        self.do(partial(leases.claim, placement_id=share.placement.id, supervisor=share.supervisor))
        share.claimed, share.run_out = True, False

    def ship(self, share: Share, records: list[Record]) -> None:
        """Ship what node 0's journal says."""
        to = replace(share.shipped, journal_offset=share.shipped.journal_offset + 100 * len(records))
        shipment = Shipment(share.shipped, to, tuple(records))
        self.do(shipping(share, shipment))
        share.shipped = to
        share.shipments.append(shipment)
        for record in records:
            match record:
                case Started():
                    share.job.run()
                    share.job.step = record.resumed_step
                case Metrics() | EpochEnd() | Completed():
                    share.job.step = record.step
            if isinstance(record, Metrics | CheckpointSaved | EpochEnd):
                share.job.told.append((record.kind, share.placement.attempt, record.step))

    def end_share(self, share: Share, how: str, *, still_used: bool = False) -> None:
        """End a placement as its supervisor does, or its host's worker."""
        fault = FAULTS[how]
        report: dict[str, Any] | None = None
        if fault is not None:
            rank = share.placement.node_rank * share.job.devices_per_node if fault.has_rank else None
            report = {"cause": fault.cause, "message": how, "rank": rank, "time": _now().isoformat()}
        elif share.placement.node_rank == 0:
            step = (share.job.step or 0) + 1
            last = Completed(seq=9, time=_now(), step=step, epoch=1, values={}, best_checkpoint=None)
            self.ship(share, [*begun(share), last])
        end = partial(
            endings.end_placement,
            placement=share.placement,
            completed=fault is None,
            failure=report,
            spends_retry=fault is None or fault.spends_retry,
            still_used="process 7" if still_used else None,
        )
        conclusion = self.do(end)
        is_over = self._ended(share, completed=fault is None, fault=fault)
        assert (conclusion.state if conclusion else None) == (share.job.state if is_over else None)
        if still_used:
            for device in share.devices:
                self._device(device).quarantined = True

    def _ended(self, share: Share, *, completed: bool, fault: Fault | None) -> bool:
        job = share.job
        is_over = job.end(share, completed=completed, fault=fault)
        if is_over and job.has_succeeded:
            for device in (device for each in job.shares for device in each.devices):
                self._device(device).losses = 0
        elif is_over and (at_fault := job.was_lost_on()) is not None:
            blamed = self._device(at_fault)
            blamed.losses += 1
            blamed.quarantined |= blamed.losses >= QUARANTINE_AFTER
        return is_over

    def _device(self, device: tuple[str, str]) -> ModelDevice:
        host_name, name = device
        return self.fleet[host_name].devices[name]


def register(host_name: str, worker: str) -> Callable[[Session], None]:
    """The call of a worker that starts on a host."""
    found = [DeviceInfo(name, "cuda", model="simulated", simulated=True) for name in DEVICES]
    return partial(hosts.register, name=host_name, worker=worker, run_root=f"/runs/{host_name}", devices=found)


def beat(host_name: str, worker: str) -> Callable[[Session], None]:
    """The call of a worker that lives."""
    return partial(hosts.beat, name=host_name, worker=worker)


def shipping(share: Share, shipment: Shipment) -> Callable[[Session], None]:
    """The call that ships records: the offsets and the rows in one transaction."""

    def ship(session: Session) -> None:
        attempts.advance(session, share.placement, shipped=shipment.shipped, to=shipment.to)
        store_records(session, share.placement, shipment.records)

    return ship


def begun(share: Share) -> list[Record]:
    """The record that the ranks are up, where that is news; its step tells of which attempt it is."""
    if share.shipments:
        return []
    devices = tuple(share.placement.devices)
    resumed_step = share.placement.attempt * 1000
    return [Started(seq=0, time=_now(), world_size=len(devices), devices=devices, resumed_step=resumed_step)]


def reports(share: Share, what: str, *, steps: int) -> list[Record]:
    """The records of some more steps that end with an `epoch`, with a `checkpoint`, or with `metrics` only."""
    step = (share.job.step or 0) + steps
    values = {"train/loss": 1 / step}
    metrics = Metrics(seq=0, time=_now(), step=step, epoch=1, values=values)
    match what:
        case "epoch":
            return [metrics, EpochEnd(seq=1, time=_now(), epoch=1, step=step, seconds=1.0, values=values)]
        case "checkpoint":
            file: dict[str, Any] = {"path": f"checkpoints/{step}.pt", "sha256": "0" * 64, "size_bytes": 1}
            return [metrics, CheckpointSaved(seq=1, time=_now(), step=step, epoch=1, best=True, **file)]
    return [metrics]


def _plan(session: Session) -> list[Placement]:
    return [attempts.get_placement(session, launch.placement_id) for launch in plan_unless_planned(session)]


def _end_rests(session: Session) -> None:
    for job in session.scalars(select(Job).where(Job.not_before.is_not(None))):
        assert job.not_before is not None
        job.not_before -= timedelta(hours=1)


def _now() -> datetime:
    return datetime.now(UTC)


@cache
def _spec(kind: str, priority: int, max_retries: int, preemptible: bool) -> JobSpec:
    """A spec; these are the same few again and again, and to check one takes a while."""
    policy = {"priority": priority, "max_retries": max_retries, "preemptible": preemptible}
    return JobSpec.model_validate({**KINDS[kind], **policy, "train": {"model": "mlp", "data": "digits"}})
