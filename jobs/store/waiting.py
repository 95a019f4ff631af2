"""Waiting jobs as the planner sees them: one query for the whole queue, and a few for those that have run before.

Ten thousand may be queued, and every round of planning reads them all: so no spec is read where there is a request,
and texts that many of them share are parsed once.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import Text, cast, literal, select
from sqlalchemy.orm import Session

from jobs import pace
from jobs.pace import Try
from jobs.planner.request import Request, parse_request
from jobs.planner.view import WaitingJob
from jobs.spec import stored_request
from jobs.states import Intent, State
from jobs.store import lines, reach
from jobs.store.attempts import TRY_COLUMNS
from jobs.store.reach import Reach, Readers
from jobs.store.roots import Allowances
from jobs.tables import Attempt, Job

SPECS_AT_ONCE = 1000
"""Specs that one query reads: there is a limit to the parameters of a statement."""

QUEUED = (Job.state == State.QUEUED, Job.intent == Intent.RUN)


@dataclass(slots=True)
class Queue:
    """Every queued job that wants to run."""

    jobs: list[WaitingJob] = field(default_factory=list)
    said: dict[int, lines.Said] = field(default_factory=dict)
    unreadable: dict[int, str] = field(default_factory=dict)
    """Jobs whose spec cannot be read, and why, as far as that is not stored yet."""
    unstored: dict[int, str] = field(default_factory=dict)


def read(session: Session, at: datetime, readers: Readers, allowances: Allowances, *, with_labels: bool) -> Queue:
    """Return the queue at the database's time `at`; with its jobs' labels only where a quota asks for them."""
    queue = Queue()
    past = _Past(session, at, readers)
    rows = session.execute(_ROWS.add_columns(_LABELS if with_labels else _NO_LABELS)).all()
    specs = _specs(session, [row.id for row in rows if _parsed(row.request) is None])
    for row in rows:
        request = _parsed(row.request)
        if request is None:
            try:
                request = stored_request(specs[row.id])
            except ValueError as error:
                if row.reason != lines.unreadable(error):
                    queue.unreadable[row.id] = str(error)
                continue
            if row.request is None:
                queue.unstored[row.id] = request.model_dump_json()
        reached = allowances.narrowed(past.reach(row.id, request, row.parent_checkpoint_id), row.needs)
        queue.jobs.append(
            WaitingJob(
                id=row.id,
                priority=row.priority,
                waits_from=row.waits_from.timestamp(),
                request=request,
                user=row.user,
                labels=_labels(row.labels),
                duration_s=past.duration_s(row.id, request, row.progress, from_step=reached.step),
                not_before=None if row.not_before is None else row.not_before.timestamp(),
                reservation=lines.parse_reservation(row.reservation),
                resumes_on=reached.hosts,
                resume_note=reached.note,
            )
        )
        queue.said[row.id] = lines.Said(
            reason=row.reason,
            line_key=row.line_key,
            predicted_start=None if row.predicted_start is None else row.predicted_start.timestamp(),
            waits_for=lines.parse_holders(row.waits_for),
            reservation=queue.jobs[-1].reservation,
        )
    return queue


class _Past:
    """What queued jobs that ran before, or start from another's checkpoint, have behind them."""

    def __init__(self, session: Session, at: datetime, readers: Readers) -> None:
        self._at = at
        self._readers = readers
        self._tries: dict[int, list[Try]] = {}
        tried = select(Job.id).where(*QUEUED, Job.attempt > 0)
        for row in session.execute(select(Attempt.job_id, *TRY_COLUMNS).where(Attempt.job_id.in_(tried))):
            past = Try(row.created_at, row.started_at, row.ranks_ended_at, row.resumed_step)
            self._tries.setdefault(row.job_id, []).append(past)
        self._own = reach.by_job(session, tried)
        children = select(Job.parent_checkpoint_id).where(*QUEUED, Job.parent_checkpoint_id.is_not(None))
        self._of_parents = reach.by_id(session, children)

    def reach(self, job_id: int, request: Request, parent_checkpoint_id: int | None) -> Reach:
        if job_id in self._own:
            return self._readers.of_own(self._own[job_id], nodes=request.nodes)
        parent = None if parent_checkpoint_id is None else self._of_parents.get(parent_checkpoint_id)
        return Reach(0, None, None) if parent is None else self._readers.of_another(parent)

    def duration_s(
        self, job_id: int, request: Request, progress: Mapping[str, Any] | None, *, from_step: int
    ) -> float | None:
        """How long it will run at most: by its pace, or what is left of its time limit, whichever is less."""
        tries = self._tries.get(job_id, [])
        limit_s = None
        if request.time_limit_s is not None:
            limit_s = max(request.time_limit_s - pace.trained_s(tries, self._at), 0.0)
        return pace.sooner(pace.run_s(tries, progress, from_step=from_step), limit_s) if tries else limit_s


_LABELS = cast(Job.labels, Text).label("labels")
_NO_LABELS = literal("{}").label("labels")
_ROWS = (
    select(
        Job.id,
        Job.priority,
        Job.waits_from,
        Job.request,
        Job.needs,
        Job.user,
        Job.not_before,
        Job.progress,
        Job.parent_checkpoint_id,
        Job.reason,
        Job.line_key,
        Job.predicted_start,
        cast(Job.waits_for, Text).label("waits_for"),
        cast(Job.reservation, Text).label("reservation"),
    )
    .where(*QUEUED)
    .order_by(Job.id)
)


def _parsed(stored: str | None) -> Request | None:
    """A job's request; None where there is none, or one of a newer release (in an upgrade): then its spec decides."""
    try:
        return None if stored is None else parse_request(stored)
    except ValueError:
        return None


def _specs(session: Session, job_ids: Sequence[int]) -> dict[int, dict[str, Any]]:
    """The specs of these jobs; a whole queue may have been stored by another version, so not in a query for each."""
    found: dict[int, dict[str, Any]] = {}
    for first in range(0, len(job_ids), SPECS_AT_ONCE):
        some = job_ids[first : first + SPECS_AT_ONCE]
        found |= {row.id: row.spec for row in session.execute(select(Job.id, Job.spec).where(Job.id.in_(some)))}
    return found


@lru_cache(maxsize=4096)
def _labels(stored: str) -> Mapping[str, str]:
    labels = json.loads(stored)
    assert isinstance(labels, dict), "labels are stored as an object"
    return labels
