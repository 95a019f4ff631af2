"""Reports of failures that a run's own files do not tell of: it never started, was ended, or died without a word."""

from datetime import UTC, datetime

from pydantic import ValidationError

from jobs.tables import Placement
from trainer.error_report import ErrorReport, signal_name
from trainer.errors import Cause, os_error_cause
from trainer.run_dir import EXIT_DISK_FULL, EXIT_INTERRUPTED


def lost(message: str) -> ErrorReport:
    """The run's supervisor, or its right to the devices, went away."""
    return ErrorReport(cause=Cause.LOST, message=message, time=datetime.now(UTC))


def interrupted(message: str) -> ErrorReport:
    """The run was told to end early."""
    return ErrorReport(cause=Cause.INTERRUPTED, message=message, time=datetime.now(UTC))


def out_of_time(limit_s: float) -> ErrorReport:
    """The job has trained for as long as its user allows."""
    message = f"time_limit_s: it has trained for its {limit_s:g} s, over all attempts"
    return ErrorReport(cause=Cause.TIME_LIMIT, message=message, time=datetime.now(UTC))


def hung(quiet_s: float) -> ErrorReport:
    """Neither ranks nor the launcher, which was to end them, did anything."""
    message = f"no rank made progress for {quiet_s:.0f} s, and its launcher, which hangs too, did not end it"
    return ErrorReport(cause=Cause.HANG, message=message, time=datetime.now(UTC))


def not_started(error: OSError) -> ErrorReport:
    """The host could not start the trainer: no fault of the training, whatever it was short of."""
    return _of_the_disk(error, f"the run could not be started: {error}")


def unwritable(error: OSError) -> ErrorReport:
    """The run directory has gone or cannot be written any more, nor could the run say why it ended."""
    return _of_the_disk(error, f"its run directory cannot be written any more: {error.strerror}")


def spec_unreadable(error: ValidationError) -> ErrorReport:
    """The stored spec is of another version of the service: no try of this one would read it."""
    problems = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
    message = f"its spec cannot be read by this version: {problems}"
    return ErrorReport(cause=Cause.CONFIG, message=message, time=datetime.now(UTC))


def unkillable(placement: Placement) -> str:
    """Say why a placement's devices are taken away: whoever had them next would share them."""
    return f"a process of job {placement.job_id}, attempt {placement.attempt} cannot be killed; it may need a reboot"


def _of_the_disk(error: OSError, message: str) -> ErrorReport:
    cause = Cause.DISK_FULL if os_error_cause(error) is Cause.DISK_FULL else Cause.LOST
    return ErrorReport(cause=cause, message=message, time=datetime.now(UTC))


def exited(returncode: int) -> ErrorReport:
    """What the trainer's exit status alone tells; negative where a signal ended it."""
    if returncode == EXIT_INTERRUPTED:
        return interrupted("the run was interrupted")
    at = datetime.now(UTC)
    if returncode == EXIT_DISK_FULL:
        return ErrorReport(cause=Cause.DISK_FULL, message="no space was left where the run writes", time=at)
    if returncode < 0:
        name = signal_name(-returncode)
        message = f"the trainer was ended by {name}"
        return ErrorReport(cause=Cause.KILLED_BY_SIGNAL, message=message, signal=name, time=at)
    message = f"the trainer exited with status {returncode} and without a completion record; see trainer.log"
    return ErrorReport(cause=Cause.EXCEPTION, message=message, exit_code=returncode, time=at)
