"""The line: what the planner last said of each job that waits in it, and each one's position."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

from pydantic import TypeAdapter
from sqlalchemy import bindparam, func, select, update
from sqlalchemy.orm import Session

from jobs.planner.view import Holder, Reservation, Wait
from jobs.states import State
from jobs.store.transitions import changed
from jobs.tables import Job

LEAST_SHIFT_S = 10.0
"""A time that is foretold is written again once it is off by this much, ..."""
LEAST_SHIFT = 0.05
"""... and by this part of what is left until then: an estimate that wavers is no news."""
MOST_NEWS = 1000
"""Jobs that one round writes news of; those further back in the line are told in the next ones."""

_RESERVATION = TypeAdapter(Reservation)


class Said(NamedTuple):
    """What the database has of a queued job's place in the line."""

    reason: str | None
    line_key: float | None
    predicted_start: float | None
    """Seconds since the epoch."""
    waits_for: tuple[Holder, ...]
    reservation: Reservation | None


def note(session: Session, waits: Iterable[Wait], said: Mapping[int, Said], *, at: float) -> None:
    """Write what queued jobs wait for, as far as that is news: a round with nothing new writes nothing.

    `waits` are in the order of the line, and `said` is what was written of each before.
    """
    news = [wait for wait in waits if is_news(wait, said[wait.job_id], at)]
    # Reservations come first: the next plan goes by what is stored, and one that ran out of room here would be another
    # job's by then. Then those that have no place yet: until they have, nobody can say where they are.
    news.sort(key=lambda wait: _urgency(wait, said[wait.job_id], at))
    rows = [_row(wait) for wait in news[:MOST_NEWS]]
    if rows:
        session.connection().execute(_SAY, rows)


def is_news(wait: Wait, said: Said, at: float) -> bool:
    """Whether the planner says at the time `at`, in seconds since the epoch, what the database does not have yet."""
    return (
        wait.reason != said.reason
        or wait.line_key != said.line_key
        or wait.waits_for != said.waits_for
        or _has_shifted(wait.predicted_start, said.predicted_start, at)
        or _is_another(wait.reservation, said.reservation, at)
    )


def unreadable(error: ValueError | str) -> str:
    """Return the reason of a queued job whose spec cannot be read."""
    return f"its spec cannot be read by this version: {error}"


def note_unreadable(session: Session, job_id: int, error: str) -> None:
    """Write that a queued job's spec is of another version, if that is news."""
    reason = unreadable(error)
    unchanged = Job.reason.is_distinct_from(reason)
    changed(session, update(Job).where(Job.id == job_id, Job.state == State.QUEUED, unchanged).values(reason=reason))


def positions(session: Session, job_ids: Sequence[int]) -> dict[int, int]:
    """Return the place in the line, from 1, of each of these jobs that is queued and was planned."""
    place = func.row_number().over(order_by=(Job.line_key, Job.id)).label("place")
    line = select(Job.id, place).where(Job.state == State.QUEUED, Job.line_key.is_not(None)).subquery()
    if not job_ids:
        return {}
    found = session.execute(select(line.c.id, line.c.place).where(line.c.id.in_(job_ids)))
    return {row.id: row.place for row in found}


def stored_reservation(reservation: Reservation | None) -> dict[str, Any] | None:
    """Return a reservation as `jobs.reservation` holds it."""
    return None if reservation is None else _RESERVATION.dump_python(reservation, mode="json")


def parse_reservation(stored: str | None) -> Reservation | None:
    """Return the reservation in a JSON text; None for one of another version, whose devices are then free again."""
    try:
        return None if stored is None else _RESERVATION.validate_json(stored)
    except ValueError:
        return None


@lru_cache(maxsize=4096)
def parse_holders(stored: str | None) -> tuple[Holder, ...]:
    """Return the holders in a JSON text. Thousands of waiting jobs share a few such texts, so each is read once."""
    try:
        return () if stored is None else _HOLDERS.validate_json(stored)
    except ValueError:  # of another version: it is written anew
        return ()


_HOLDERS = TypeAdapter(tuple[Holder, ...])

_SAY = (
    update(Job.__table__)  # type: ignore[arg-type]  # a mapped class's table is a Table, which mypy is not told
    .where(Job.id == bindparam("job"), Job.state == State.QUEUED)
    .values(
        {
            column: bindparam(f"new_{column.key}", type_=column.type)
            for column in (Job.reason, Job.line_key, Job.predicted_start, Job.waits_for, Job.reservation)
        }
    )
)


def _row(wait: Wait) -> dict[str, Any]:
    holders = [{"host": each.host, "device": each.device, "job_id": each.job_id} for each in wait.waits_for]
    return {
        "job": wait.job_id,
        "new_reason": wait.reason,
        "new_line_key": wait.line_key,
        "new_predicted_start": _time(wait.predicted_start),
        "new_waits_for": holders or None,
        "new_reservation": stored_reservation(wait.reservation),
    }


def _is_another(new: Reservation | None, old: Reservation | None, at: float) -> bool:
    if new is None or old is None:
        return new is not old
    if (new.device_ids, new.preempts) != (old.device_ids, old.preempts):
        return True
    return _has_shifted(new.start, old.start, at)


def _urgency(wait: Wait, said: Said, at: float) -> int:
    """Which news of it is written before that of greater numbers."""
    if _is_another(wait.reservation, said.reservation, at):
        return 0
    return 1 if said.line_key is None else 2


def _has_shifted(new: float | None, old: float | None, at: float) -> bool:
    if new is None or old is None:
        return new is not old
    return abs(new - old) > max(LEAST_SHIFT_S, LEAST_SHIFT * abs(new - at))


def _time(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
