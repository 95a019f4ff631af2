"""Faults of a host's clock: the guest's wall clock is set an hour forward or back while a run of it trains."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import select

from jobs.states import State
from jobs.tables import Attempt, Base, Job, JobEvent, Lease, LogChunk, Placement
from tests.faults.matrix import guest
from tests.faults.matrix.fault import Fault
from tests.faults.matrix.trial import Trial
from trainer.run_dir import RunDir

HOUR_S = 3600
PACE_S = 0.2
"""Of a program that trains for some time with the wrong clock."""
SLACK = timedelta(seconds=1)


def set_forward(trial: Trial) -> None:
    """Nothing expires early, on this host or by its hand elsewhere."""
    _set(trial, by_s=HOUR_S)


def set_back(trial: Trial) -> None:
    """Nothing is held for an hour too long."""
    _set(trial, by_s=-HOUR_S)


def _set(trial: Trial, *, by_s: float) -> None:
    """Set the clock under a run of its own and beside one of another host, and right again when both are over.

    Both have to go on as if nothing had happened, as has a job that comes now. Recovery counts from the change.
    """
    host = trial.lane.guest()
    trial.meanwhile.enter_context(host.open())
    began = datetime.now(UTC)
    job_ids = [trial.submit({"count": 1, "host": name}, ranks=1, pace_s=PACE_S) for name in (guest.NAME, "alpha")]
    trial.pause(trial.length_s)
    host.set_clock(by_s=by_s)
    trial.struck()
    trial.meanwhile.callback(host.set_clock, by_s=0)
    job_ids.append(trial.lane.submit({"count": 1, "host": guest.NAME}, is_ddp=False))
    trial.meanwhile.callback(_assert_nobody_noticed, trial, job_ids, since=began)
    trial.meanwhile.callback(_assert_was_set, trial, job_ids[-1], by_s=by_s)


def _assert_was_set(trial: Trial, job_id: int, *, by_s: float) -> None:
    """Wait for a run that began after the change, and assert that its processes had the wrong time."""
    finished_at = trial.service.wait_for(job_id, State.SUCCEEDED).finished_at
    completed = RunDir(Path(trial.service.placement(job_id).run_dir)).completed()
    assert completed is not None
    assert finished_at is not None
    off_s = (completed.time - finished_at).total_seconds()
    assert abs(off_s - by_s) < HOUR_S / 2, f"the clock was off by {off_s} s"


def _assert_nobody_noticed(trial: Trial, job_ids: Sequence[int], *, since: datetime) -> None:
    """Assert that each job is in its first attempt, and that no time that the service keeps of it is off.

    By the database's clock, which is this machine's.
    """
    until = datetime.now(UTC) + SLACK
    for job_id in job_ids:
        trial.assert_went_on(job_id)
        for told, at in _times(trial, job_id):
            assert since - SLACK <= at <= until, f"{told} of job {job_id} is {at}"


def _times(trial: Trial, job_id: int) -> Iterator[tuple[str, datetime]]:
    """Yield every time in the rows of a job but when its leases would have run out.

    Nor when metrics and checkpoints were made: that is what the journal says, by the clock of its host.
    """
    with trial.service.database.session_scope(read_only=True) as session:
        rows: list[Base] = [session.get_one(Job, job_id)]
        for table in (Attempt, Placement, Lease, JobEvent, LogChunk):
            rows += session.scalars(select(table).where(table.job_id == job_id))
        for row in rows:
            for column in row.__table__.columns:
                at = getattr(row, column.key)
                if isinstance(at, datetime) and column.key != "expires_at":
                    yield str(column), at


FAULTS = (
    Fault("clock of the host set an hour forward", set_forward),
    Fault("clock of the host set an hour back", set_back),
)
