"""Reservations: which devices are set aside for a job that can not start yet, and until when others may use them."""

from dataclasses import dataclass, field

from jobs.planner.demand import Demand
from jobs.planner.fleet import UNKNOWN, Fleet
from jobs.planner.preemption import Preemption
from jobs.planner.slots import Slot, first_unforeseeable
from jobs.planner.view import Reservation, RunningJob, WaitingJob

WORTH_A_MOVE = 0.9
"""A job moves to devices for which it waits at most this part of the time."""
MOST_FORETOLD_S = 10 * 365 * 86_400.0
"""Further ahead nothing is foretold: many limits one after the other lead beyond any date that can be written."""


@dataclass(frozen=True)
class Choice:
    """The devices that are to be set aside for a job."""

    slots: list[Slot]
    """Node by node."""
    start: float | None = None
    """The earliest that an earlier plan foretold for it."""
    preempts: bool = False
    victims: list[RunningJob] = field(default_factory=list)
    """Jobs to be stopped for it now."""


def ready(slots: list[Slot] | None, ends: float) -> list[Slot] | None:
    """Return the devices that were set aside for a job if all of them are free for it now."""
    return slots if slots is not None and all(slot.can_be_used_until(ends) for slot in slots) else None


def is_settled(job: WaitingJob, demand: Demand) -> bool:
    """Whether others were stopped for a job, and the devices that this gives it are free or about to be."""
    if job.reservation is None or not job.reservation.preempts:
        return False
    kept = demand.kept(job.reservation)
    return kept is not None and all(_is_coming(slot) for slot in kept)


def choose(fleet: Fleet, job: WaitingJob, demand: Demand, preemption: Preemption) -> Choice:
    """Choose what is set aside for a job: what was before, unless others are expected much sooner than ever before, or
    stopping others gives it at once what it would wait long for else.

    A gang that went from host to host with every new forecast would find none of them whole in the end.
    """
    before, kept = job.reservation, demand.kept(job.reservation)
    if before is None or kept is None:
        unaided = Choice(demand.soonest())
    elif all(_is_coming(slot) for slot in kept):
        return Choice(kept, before.start, before.preempts)
    else:
        sooner = demand.soonest()
        unaided = Choice(sooner if _is_worth_a_move(fleet, before, kept, sooner) else kept, before.start)
    start = _expected(fleet, unaided.slots)
    if start is not None and start - fleet.now <= preemption.patience_s:
        return unaided
    clearing = preemption.clear(job, demand)
    if clearing is None:
        return unaided
    return Choice(clearing.slots, unaided.start, preempts=bool(clearing.victims), victims=clearing.victims)


def make(fleet: Fleet, choice: Choice, job: WaitingJob) -> tuple[float | None, Reservation]:
    """Set the devices aside; return when the job is expected to start, and the reservation.

    The reservation's own start is the earliest that was ever foretold. If it were put off whenever those who have the
    devices run longer, others could use them again and again, and the job might never start.
    """
    start = _expected(fleet, choice.slots)
    known = [each for each in (start, choice.start) if each is not None]
    reservation = Reservation(
        tuple(slot.device.id for slot in choice.slots), min(known, default=None), preempts=choice.preempts
    )
    until, unforeseeable = _end(choice.slots, job, start)
    for slot in choice.slots:
        fleet.set_aside(slot, job.id, start=reservation.start, until=until, unforeseeable=unforeseeable)
    return start, reservation


def book(fleet: Fleet, slots: list[Slot], job: WaitingJob) -> float | None:
    """Foretell when a job starts for which nothing is set aside, for those after it to be foretold too."""
    start = _expected(fleet, slots)
    until, unforeseeable = _end(slots, job, start)
    for slot in slots:
        fleet.book(slot, until, unforeseeable)
    return start


def _end(slots: list[Slot], job: WaitingJob, start: float | None) -> tuple[float, int | None]:
    """When a job will have ended that waits for these; where that is infinity, for want of what is known of a job."""
    if start is None:
        return UNKNOWN, first_unforeseeable(slots)
    if job.duration_s is None:
        return UNKNOWN, job.id
    return start + job.duration_s, None


def _is_coming(slot: Slot) -> bool:
    """Whether a device is free, or will be as soon as the job on it has stopped, and nobody comes first."""
    return (not slot.is_taken or slot.is_leaving) and slot.kept_for is None


def _is_worth_a_move(fleet: Fleet, before: Reservation, kept: list[Slot], sooner: list[Slot]) -> bool:
    """Whether other devices are foretold to come a good part sooner than those that are kept, and than any before.

    By the second, a job moves no more once the time has come that was foretold first: then it waits, at most, until
    those that have its devices end.
    """
    start, now = _expected(fleet, sooner), fleet.now
    if start is None or (before.start is not None and start >= before.start):
        return False
    expected = _expected(fleet, kept)
    return expected is None or start - now < WORTH_A_MOVE * (expected - now)


def _expected(fleet: Fleet, slots: list[Slot]) -> float | None:
    start = max(fleet.now, *(slot.free_at for slot in slots))
    return None if start - fleet.now > MOST_FORETOLD_S else start
