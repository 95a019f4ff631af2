"""Faults of a host's disk: the one that the guest's run root is on fills up, or turns read-only."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from jobs.states import Outcome, State
from tests.faults.matrix import guest
from tests.faults.matrix.fault import Fault, Missed
from tests.faults.matrix.trial import Trial
from tests.waiting import wait_until
from trainer.errors import Cause

PAGE_BYTES = 4096
MOST_PAGES_LEFT = 4
"""Half of what the checkpoints of a program take."""
OUT_OF_USE_S = 10
"""How long the disk stays full, or read-only, after the run is over, or could not begin."""
REFILL_EVERY_S = 0.02


def fill_but_for_a_little(trial: Trial) -> None:
    """A checkpoint does not fit, and the journal does, for a while at least: how much is left is drawn."""
    _fill(trial, but_for_bytes=trial.draws.randint(1, MOST_PAGES_LEFT) * PAGE_BYTES)


def fill(trial: Trial) -> None:
    """No byte is left for journal, logs or the report of why the run has ended."""
    _fill(trial, but_for_bytes=0)


def _fill(trial: Trial, *, but_for_bytes: int) -> None:
    """Fill the disk until the run on it has ended. Once there is space, it goes on: recovery counts from then."""
    job_id = _submit_to_the_guest(trial)
    with _ballast(trial.lane.guest().disk, but_for_bytes=but_for_bytes):
        _wait_out(trial, job_id, cause=Cause.DISK_FULL)
    trial.struck()


def turn_read_only(trial: Trial) -> None:
    """What is open is written on; no checkpoint can be begun any more, nor the report of why the run has ended."""
    job_id = _submit_to_the_guest(trial)
    with trial.lane.guest().read_only_disk():
        _wait_out(trial, job_id, cause=Cause.LOST)
    trial.struck()


def _submit_to_the_guest(trial: Trial) -> int:
    """Submit the trial's job, and return its id at the instant to strike at."""
    host = trial.lane.guest()
    if not host.has_small_disk:
        pytest.skip("this machine lets the tests mount no disk of their own")
    trial.meanwhile.enter_context(host.open())
    job_id = trial.submit({"count": 1, "host": guest.NAME}, ranks=1)
    trial.pause(trial.length_s)
    return job_id


def _wait_out(trial: Trial, job_id: int, *, cause: Cause) -> None:
    """Return when the run has ended for want of the disk, and its job waited for that for a while."""
    wait_until(partial(_has_stopped, trial, job_id), timeout_s=60, what="the run to end for want of its disk")
    if any(each.outcome == Outcome.SUCCEEDED for each in trial.service.attempts(job_id)):
        raise Missed  # all that it still had to write found room
    trial.hold(OUT_OF_USE_S)
    _assert_it_waits(trial, job_id, cause=cause)


def _has_stopped(trial: Trial, job_id: int) -> bool:
    """Whether the job is over, or waits for a host that takes it."""
    job = trial.service.job(job_id)
    return State(job.state).is_terminal or (job.state == State.QUEUED and "guest" in (job.reason or ""))


def _assert_it_waits(trial: Trial, job_id: int, *, cause: Cause) -> None:
    """A disk out of use costs a job one retry at most; the job says why an attempt was lost and what it waits for."""
    job = trial.service.job(job_id)
    assert job.retries <= 1, "a disk that is out of use used up retries"
    for attempt in trial.service.attempts(job_id):
        if attempt.failure is not None:
            assert attempt.failure["cause"] == cause, attempt.failure


@contextmanager
def _ballast(folder: Path, *, but_for_bytes: int) -> Iterator[None]:
    """Keep a disk full: what comes free on it meanwhile is taken as well."""
    path = folder / "ballast"
    stopping = threading.Event()
    with path.open("wb") as file:

        def keep_full() -> None:
            size = file.seek(0, os.SEEK_END)
            while not stopping.wait(REFILL_EVERY_S):
                size = _grow(file.fileno(), size, _free_bytes(folder) - but_for_bytes)

        _grow(file.fileno(), 0, _free_bytes(folder) - but_for_bytes)
        filler = threading.Thread(target=keep_full, name="ballast", daemon=True)
        filler.start()
        try:
            yield
        finally:
            stopping.set()
            filler.join()
            path.unlink()


def _grow(file: int, size: int, by: int) -> int:
    """Make a file larger by so many bytes, as far as they are still there, and return its size."""
    while by >= PAGE_BYTES:
        with suppress(OSError):  # another was quicker
            os.posix_fallocate(file, size, by)
            return size + by
        by //= 2
    return size


def _free_bytes(folder: Path) -> int:
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize


FAULTS = (
    # What it ends, and what could not even begin on it: after that its host is closed until it has space.
    Fault("disk full at a checkpoint", fill_but_for_a_little, attempts=3),
    Fault("disk full at the journal", fill, attempts=3),
    Fault("disk of the run root read-only for 10 s", turn_read_only, attempts=3),
)
