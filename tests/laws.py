"""The laws of the service (docs/architecture.md), read from the history that the database keeps and from the files.

Times are those that the database stamped: what a record says of its own time proves nothing about when it was stored.
"""

import hashlib
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

from sqlalchemy import func, literal_column, select
from sqlalchemy.orm import Session

from jobs.database import Database
from jobs.states import Outcome
from jobs.store import attempts, jobs, reports
from jobs.tables import Attempt, Checkpoint, JobEvent, Lease, LogChunk, Metric, Placement

OF_A_RUN = ("epoch", "log", "note")
"""Kinds of events that a run's own supervisor writes; the others tell of the job, whatever its attempt."""


def assert_held(database: Database, job_ids: Sequence[int]) -> None:
    """Assert that these jobs, all terminal, and all leases there ever were kept the laws; tell all that is broken."""
    broken: list[AssertionError] = []
    with database.session_scope(read_only=True) as session:
        checks = [partial(assert_leases_never_overlapped, session)]
        checks += [partial(each, session, job_id) for job_id in job_ids for each in OF_A_JOB]
        for check in checks:
            try:
                check()
            except AssertionError as error:
                broken.append(AssertionError(f"{check.func.__name__}: {error}").with_traceback(error.__traceback__))
    if broken:
        raise AssertionError("\n".join(map(str, broken))) from broken[0]


def assert_leases_never_overlapped(session: Session) -> None:
    """No device was ever held by two attempts at once, and none is held now."""
    by_device: dict[int, list[Lease]] = {}
    for lease in session.scalars(select(Lease).order_by(Lease.acquired_at, Lease.id)):
        assert lease.released_at is not None, f"device {lease.device_id} is still held by job {lease.job_id}"
        by_device.setdefault(lease.device_id, []).append(lease)
    for device_id, leases in by_device.items():
        for earlier, later in pairwise(leases):
            assert earlier.released_at is not None
            assert earlier.released_at <= later.acquired_at, f"two leases on device {device_id} at once"


def assert_attempts_within_budget(session: Session, job_id: int) -> None:
    """Attempts came one after the other, all have ended, and no more were lost than the job may retry."""
    job = jobs.get(session, job_id)
    tried = attempts.select_attempts(session, job_id)
    assert [attempt.number for attempt in tried] == list(range(1, job.attempt + 1))
    for attempt in tried:
        assert attempt.ended_at is not None, f"attempt {attempt.number} of job {job_id} has not ended"
    for earlier, later in pairwise(tried):
        assert earlier.ended_at is not None
        assert earlier.ended_at <= later.created_at, f"two attempts of job {job_id} at once"
    assert job.retries <= job.max_retries
    lost = [attempt for attempt in tried if attempt.outcome == Outcome.LOST]
    faults = [attempt for attempt in lost if (attempt.failure or {}).get("cause") != "interrupted"]
    assert len(faults) <= job.max_retries + 1, f"job {job_id} was tried beyond its budget"


def assert_placements_end_with_their_devices(session: Session, job_id: int) -> None:
    """Each host's share of an attempt freed its devices as it ended, wrote nothing after, and the last one ended it."""
    for attempt in attempts.select_attempts(session, job_id):
        mine = (Placement.job_id == job_id, Placement.attempt == attempt.number)
        placements = session.scalars(select(Placement).where(*mine).order_by(Placement.node_rank)).all()
        assert [placement.node_rank for placement in placements] == list(range(len(placements)))
        ends = {placement.node_rank: placement.ended_at for placement in placements}
        assert attempt.ended_at == max((end for end in ends.values() if end is not None), default=None)
        for placement in placements:
            assert placement.ended_at is not None, f"node {placement.node_rank} of job {job_id} has not ended"
            released = session.scalars(select(Lease.released_at).where(Lease.placement_id == placement.id)).all()
            assert list(released) == [placement.ended_at] * len(placement.devices)
            assert placement.heartbeat_at is None or placement.heartbeat_at <= placement.ended_at
        # Each node's ranks are numbered behind those of the node before; with one node they are all its own.
        of_attempt = (LogChunk.job_id == job_id, LogChunk.attempt == attempt.number)
        for chunk in session.scalars(select(LogChunk).where(*of_attempt)):
            end = ends[chunk.rank // len(placements[0].devices)]
            assert end is None or chunk.at <= end, f"output of rank {chunk.rank} came after the end of its host's share"


def assert_no_stale_attempt_wrote(session: Session, job_id: int) -> None:
    """Nothing was stored in the name of an attempt after the database had ended it."""
    tried = attempts.select_attempts(session, job_id)
    ended = {attempt.number: attempt.ended_at for attempt in tried if attempt.ended_at is not None}
    for chunk in session.scalars(select(LogChunk).where(LogChunk.job_id == job_id).order_by(LogChunk.id)):
        assert chunk.at <= ended.get(chunk.attempt, chunk.at), f"output of attempt {chunk.attempt} came after its end"
    of_a_run = select(JobEvent).where(JobEvent.job_id == job_id, JobEvent.kind.in_(OF_A_RUN))
    for event in session.scalars(of_a_run.order_by(JobEvent.id)):
        assert event.at <= ended.get(event.attempt, event.at), (
            f"{event.kind} of attempt {event.attempt} came after its end"
        )
    # That of one with a copy is when the copy was made, which is long after its attempt as a rule.
    for checkpoint in session.scalars(
        select(Checkpoint).where(Checkpoint.job_id == job_id, Checkpoint.copy_url.is_(None)).order_by(Checkpoint.id)
    ):
        end = ended.get(checkpoint.attempt)
        assert end is None or (checkpoint.placed_at is not None and checkpoint.placed_at <= end), (
            f"checkpoint of step {checkpoint.step} of attempt {checkpoint.attempt} came after its end"
        )
    _assert_in_order_of_attempts(session, job_id)
    if session.get_bind().dialect.name == "postgresql":
        _assert_metrics_committed_before_the_end(session, job_id)


def assert_checkpoints_whole(session: Session, job_id: int) -> None:
    """Every checkpoint that the database offers is there and is the file that was registered."""
    for checkpoint in session.scalars(reports.select_checkpoints(job_id)):
        content = Path(checkpoint.path).read_bytes()
        assert len(content) == checkpoint.size_bytes, checkpoint.path
        assert hashlib.sha256(content).hexdigest() == checkpoint.sha256, checkpoint.path


OF_A_JOB = (
    assert_attempts_within_budget,
    assert_placements_end_with_their_devices,
    assert_no_stale_attempt_wrote,
    assert_checkpoints_whole,
)


def training_series(metrics: Sequence[Metric]) -> list[tuple[str, int, float | None]]:
    """What a training is known by: its loss at each step and its validation; not how fast it was."""
    return [
        (metric.name, metric.step, metric.value)
        for metric in metrics
        if metric.name == "train/loss" or metric.name.startswith("val/")
    ]


def _assert_in_order_of_attempts(session: Session, job_id: int) -> None:
    """Ids count up as rows are written: none of an earlier attempt comes behind those of a later one."""
    for table in (Checkpoint, LogChunk, JobEvent):
        numbers = session.scalars(select(table.attempt).where(table.job_id == job_id).order_by(table.id)).all()
        assert list(numbers) == sorted(numbers), f"{table.__tablename__} of job {job_id} are out of order"


def _assert_metrics_committed_before_the_end(session: Session, job_id: int) -> None:
    """By the server's own record of when each row's transaction was committed (`track_commit_timestamp`)."""
    ends = select(
        Attempt.number, func.pg_xact_commit_timestamp(literal_column("attempts.xmin")).label("committed_at")
    ).where(Attempt.job_id == job_id)
    ended = ends.subquery()
    late = (
        select(Metric.attempt, Metric.name, Metric.step)
        .join(ended, ended.c.number == Metric.attempt)
        .where(
            Metric.job_id == job_id,
            func.pg_xact_commit_timestamp(literal_column("metrics.xmin")) > ended.c.committed_at,
        )
    )
    assert session.execute(late).all() == [], "metrics came after the end of their attempt"
