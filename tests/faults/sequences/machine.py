"""The machine: calls drawn by lot, each held against the model and the laws as soon as it returns."""

import sys
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule
from sqlalchemy import update
from sqlalchemy.orm import Session

from jobs.changes import JobChanges
from jobs.errors import HostNameTakenError, NotFoundError, OffsetsMovedError, StaleAttemptError, StateConflictError
from jobs.states import Intent, State, StopOrder
from jobs.store import jobs, leases, maintenance, verbs
from jobs.tables import Host, Lease
from tests.faults.sequences.model import ModelJob
from tests.faults.sequences.play import (
    DEVICES,
    FAULTS,
    HOSTS,
    KINDS,
    Play,
    Thing,
    beat,
    begun,
    register,
    reports,
    shipping,
)
from tests.faults.sequences.stale import CALLS
from trainer.journal import CheckpointSaved, Metrics
from worker.shipping import store_records

MOST_JOBS = 6
VERBS: dict[Intent, Callable[..., object]] = {
    Intent.PAUSE: verbs.pause,
    Intent.RUN: verbs.resume,
    Intent.CANCEL: partial(jobs.set_intent, intent=Intent.CANCEL),
}
submissions: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(list(KINDS)),
        "priority": st.sampled_from((0, 50, 100)),
        "max_retries": st.sampled_from((1, 0, 3)),
        "preemptible": st.booleans(),
    }
)
picks = st.integers(0, 11)
"""Which of the things that there are: from the newest on, round and round."""
host_names = st.sampled_from(HOSTS)
wakes = st.booleans()
"""Whether the wake-up to plan, which follows a call, arrives."""


class Machine(Play):
    """Users, planners, supervisors, workers and operators, in any order."""

    played: ClassVar[int]
    """Sequences that came to their end."""

    # Users

    @initialize(first=st.lists(submissions, min_size=1, max_size=3), wake=wakes)
    def begin(self, first: list[dict[str, Any]], wake: bool) -> None:
        """Most calls are about jobs: a sequence does not wait for one by chance."""
        for submission in first:
            self.submit_job(**submission)
        self._wake(wake)

    @precondition(lambda self: len(self.jobs) < MOST_JOBS)
    @rule(submission=submissions, wake=wakes)
    def submit(self, submission: dict[str, Any], wake: bool) -> None:
        self.submit_job(**submission)
        self._wake(wake)

    @rule(
        pick=picks,
        intents=st.lists(st.sampled_from((Intent.PAUSE, Intent.RUN, Intent.CANCEL)), min_size=1, max_size=3),
        wake=wakes,
    )
    def intend(self, pick: int, intents: list[Intent], wake: bool) -> None:
        """A user says what they want of a job, and may change their mind: what follows must follow from any state."""
        job = self._job(pick)
        for intent in intents:
            call = partial(VERBS[intent], job_id=job.id)
            # A cancel is the one verb that a job in any state takes.
            if job.want(intent) or intent is Intent.CANCEL:
                self.do(call)
            else:
                self.refuse(StateConflictError, call)
            self.holds()
        self._wake(wake)

    @rule(pick=picks, wake=wakes)
    def retry(self, pick: int, wake: bool) -> None:
        job = self._job(pick, first=State.FAILED)
        call = partial(verbs.retry, job_id=job.id)
        if job.retry():
            self.do(call)
        else:
            self.refuse(StateConflictError, call)
        self._wake(wake)

    @rule(pick=picks, priority=st.sampled_from((0, 50, 100)))
    def put_elsewhere_in_the_line(self, pick: int, priority: int) -> None:
        job = self._job(pick)
        job.priority = priority
        self.do(partial(verbs.change, job_id=job.id, changes=JobChanges(priority=priority)))

    # Planners and time

    @rule()
    def plan(self) -> None:
        self.plan_once()

    @precondition(lambda self: any(job.rests for job in self.jobs.values()))
    @rule(wake=wakes)
    def rest(self, wake: bool) -> None:
        self.end_rests()
        self._wake(wake)

    @precondition(lambda self: self.open)
    @rule(pick=picks, tick=st.booleans())
    def let_run_out(self, pick: int, tick: bool) -> None:
        """So much time passes for a placement's leases; without a tick at once, its supervisor may come back yet."""
        share = _one_of(self.open, pick)
        held = update(Lease).where(Lease.placement_id == share.placement.id)
        self.do(lambda session: session.execute(held.values(expires_at=Lease.acquired_at)))
        share.run_out = True
        if tick:
            self.expire()

    @precondition(lambda self: self.open)
    @rule()
    def tick(self) -> None:
        self.expire()

    # Supervisors

    @precondition(lambda self: self.open)
    @rule(pick=picks, whats=st.lists(st.sampled_from(("metrics", "checkpoint", "epoch")), min_size=1, max_size=4))
    def go_on(self, pick: int, whats: list[str]) -> None:
        """A supervisor claims its placement, or, where it has it, ships what its ranks have done; and so on."""
        share = _one_of(self.open, pick)
        for steps, what in enumerate(whats, start=1):
            if not share.claimed:
                self.claim(share)
            elif share.placement.node_rank == 0:
                self.ship(share, begun(share) or reports(share, what, steps=steps))
            self.holds()

    @precondition(lambda self: self.claimed)
    @rule(pick=picks, obeys=st.booleans())
    def renew(self, pick: int, obeys: bool) -> None:
        """A supervisor reports, and is told whether it has to stop."""
        share = _one_of(self.claimed, pick)
        renewal = self.do(partial(leases.renew, placement=share.placement))
        share.run_out = False
        orders = renewal.orders
        assert (orders.intent, orders.stop) == (share.job.intent, share.job.order)
        if obeys and (orders.intent is not Intent.RUN or orders.stop is not None):
            self.end_share(share, "stopped in order")

    @precondition(lambda self: self.claimed)
    @rule(pick=picks, same=st.booleans())
    def claim_again(self, pick: int, same: bool) -> None:
        """The answer to a claim was lost; or the wake-up to launch came twice, and a second supervisor claims."""
        share = _one_of(self.claimed, pick)
        if same:
            self.claim(share)
        else:
            other = partial(leases.claim, placement_id=share.placement.id, supervisor="77:7")
            self.refuse(StaleAttemptError, other)

    @precondition(lambda self: self.open)
    @rule(pick=picks, how=st.sampled_from(list(FAULTS)), in_use=st.integers(0, 5), wake=wakes)
    def end(self, pick: int, how: str, in_use: int, wake: bool) -> None:
        self.end_share(_one_of(self.open, pick), how, still_used=in_use == 5 and how != "complete")
        self._wake(wake)

    @precondition(lambda self: any(share.shipments for share in self.shares))
    @rule(pick=picks, earlier=st.integers(0, 2))
    def ship_again(self, pick: int, earlier: int) -> None:
        """A shipment comes once more, since its answer was lost or it hung in the network until now."""
        share = _one_of([share for share in self.shares if share.shipments], pick)
        shipment = _one_of(share.shipments, earlier)
        self.refuse(OffsetsMovedError if share.is_open else StaleAttemptError, shipping(share, shipment))

    @precondition(lambda self: any(share.shipments for share in self.open))
    @rule(pick=picks)
    def tell_again(self, pick: int) -> None:
        """The records of a shipment come once more with no look at the offsets: they add no row."""
        share = _one_of([share for share in self.open if share.shipments], pick)
        records = [each for each in share.shipments[-1].records if isinstance(each, Metrics | CheckpointSaved)]
        before = self.ledger.everything("metrics", "checkpoints", "job_events")
        self.do(partial(store_records, placement=share.placement, records=records))
        assert self.ledger.everything("metrics", "checkpoints", "job_events") == before

    @precondition(lambda self: any(not share.is_open for share in self.shares))
    @rule(pick=picks, call=st.sampled_from(list(CALLS)))
    def come_too_late(self, pick: int, call: str) -> None:
        """A supervisor that was given up calls, with the number of its attempt."""
        share = _one_of([share for share in self.shares if not share.is_open], pick)
        self.refuse(StaleAttemptError, lambda session: CALLS[call](session, share))

    # Workers and operators

    @rule(name=host_names, trouble=st.sampled_from(("fall silent", "take the name", "remove", "drain", "evict")))
    def trouble_host(self, name: str, trouble: str) -> None:
        """One rule for all that keeps jobs from a host: were they one each, the hosts would hardly have any."""
        match trouble:
            case "fall silent":
                self._fall_silent(name)
            case "take the name":
                self._take_the_name(name)
            case "remove":
                self._remove(name)
            case _:
                self._drain(name, evict=trouble == "evict")

    @rule(name=host_names, wake=wakes)
    def come_back(self, name: str, wake: bool) -> None:
        host = self.fleet[name]
        if host.removed:
            self.refuse(HostNameTakenError, beat(name, host.worker))
        self.return_host(name)
        self._wake(wake)

    @rule(name=host_names, device=st.sampled_from(DEVICES), wake=wakes)
    def take_back(self, name: str, device: str, wake: bool) -> None:
        """An operator lets a host have jobs again, and releases one of its devices."""
        if self.fleet[name].removed:
            self.refuse(NotFoundError, partial(maintenance.release, name=name, device=device))
        else:
            self.give_back(name, device)
        self._wake(wake)

    def _fall_silent(self, name: str) -> None:
        def pass_time(session: Session) -> None:
            session.get_one(Host, name).heartbeat_at -= timedelta(hours=1)

        self.do(pass_time)
        self.fleet[name].silent = True

    def _take_the_name(self, name: str) -> None:
        """Another worker registers under a host's name, and gets it only where the one that has it is silent."""
        host = self.fleet[name]
        other = f"{int(host.worker.partition(':')[0]) + 1}:1@boot"
        if not (host.silent or host.removed):
            self.refuse(HostNameTakenError, register(name, other))
            return
        self.do(register(name, other))
        self.refuse(HostNameTakenError, beat(name, host.worker))
        host.worker, host.silent, host.removed = other, False, False

    def _remove(self, name: str) -> None:
        """Refused while the host's worker reports, or something may run there yet."""
        host = self.fleet[name]
        call = partial(maintenance.remove, name=name)
        if host.removed:
            self.refuse(NotFoundError, call)
        elif not host.silent or any(share.placement.host_name == name for share in self.open):
            self.refuse(StateConflictError, call)
        else:
            self.do(call)
            host.removed, host.drained = True, False

    def _drain(self, name: str, *, evict: bool) -> None:
        host = self.fleet[name]
        call = partial(maintenance.drain, name=name, evict=evict)
        if host.removed:
            self.refuse(NotFoundError, call)
            return
        self.do(call)
        host.drained = True
        for share in self.open:
            if evict and share.placement.host_name == name:
                share.job.order = share.job.order or StopOrder.DRAINED

    # What must hold

    @invariant()
    def holds(self) -> None:
        self.reckoning.compare(self.jobs, self.shares, self.fleet)

    def teardown(self) -> None:
        """Let everything come to its end; a sequence that broke off has nothing more to show."""
        if sys.exc_info()[0] is not None:
            return
        for name, host in self.fleet.items():
            if host.silent or host.removed:
                self.return_host(name)
            for device in DEVICES:
                if host.drained or host.devices[device].quarantined:
                    self.give_back(name, device)
        self.end_rests()
        self.plan_once()
        while self.open:
            for share in self.open:
                is_to_stop = share.job.intent is not Intent.RUN or share.job.order is not None
                self.end_share(share, "stopped in order" if is_to_stop else "complete")
            self.end_rests()  # an attempt that had lost one of its hosts before ends only now
            self.plan_once()
            self.holds()
        self.holds()
        for job in self.jobs.values():
            if job.state is State.QUEUED:
                assert not job.is_possible, f"job {job.id} waits, and nobody is in its way"
            else:
                assert job.state.is_terminal or (job.state is State.PAUSED and job.intent is Intent.PAUSE)
        unexplained = "SELECT id FROM jobs WHERE state = 'queued' AND reason IS NULL"
        assert self.ledger.rows(unexplained) == [], "a job waits for no stated reason"
        type(self).played += 1

    def _wake(self, arrives: bool) -> None:
        if arrives:
            self.plan_once()

    def _job(self, pick: int, *, first: State | None = None) -> ModelJob:
        """One of the jobs; of those in the state `first`, where there are any."""
        return _one_of([job for job in self.jobs.values() if job.state is first] or list(self.jobs.values()), pick)


def _one_of(things: list[Thing], pick: int) -> Thing:
    return things[-1 - pick % len(things)]
