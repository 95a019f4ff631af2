"""The errors a training run raises, and the cause each one stands for."""

import errno
from enum import StrEnum


class Cause(StrEnum):
    """Why a run ended without a completion record. Stored with the attempt and shown to users."""

    CONFIG = "config"
    """The configuration cannot be run as written."""
    DATA = "data"
    """The data set is missing, empty or unreadable."""
    CHECKPOINT = "checkpoint"
    """The checkpoint to resume from is missing, corrupt or of another model."""
    NON_FINITE_LOSS = "non_finite_loss"
    """The loss became NaN or infinite."""
    OUT_OF_MEMORY = "out_of_memory"
    """A device or the host had no memory left."""
    DISK_FULL = "disk_full"
    """No space was left where the run writes."""
    COMMUNICATION = "communication"
    """A collective failed with no other rank known to be at fault."""
    KILLED_BY_SIGNAL = "killed_by_signal"
    """A rank was ended from outside by a signal."""
    EXCEPTION = "exception"
    """Anything else that a rank raised: a fault in the recipe, the model or the user's own code."""
    DEVICE = "device"
    """A GPU itself failed: uncorrectable memory errors, or it was lost to the driver."""
    HANG = "hang"
    """A rank made no progress for longer than its limit."""
    TIME_LIMIT = "time_limit"
    """The job has trained for as long as it may: written by the service, never by a run."""
    LOST = "lost"
    """The host or its supervisor went away: written by the service, never by a run."""
    INTERRUPTED = "interrupted"
    """The run was asked to end early (SIGINT or SIGTERM) and did."""


def with_cause(cause: Cause, text: str) -> str:
    """Return what to tell of an error: its text, behind its cause where it does not begin with a field of that name."""
    return text if text.startswith(f"{cause}: ") else f"{cause}: {text}"


def os_error_cause(error: OSError) -> Cause:
    """Return the cause that an error of the operating system stands for."""
    return _OS_CAUSES.get(error.errno or 0, Cause.EXCEPTION)


_OS_CAUSES = {
    errno.ENOSPC: Cause.DISK_FULL,
    errno.EDQUOT: Cause.DISK_FULL,
    errno.ENOMEM: Cause.OUT_OF_MEMORY,
}


class TrainingError(Exception):
    """Base of every error that this package raises on purpose."""

    cause: Cause = Cause.EXCEPTION


class ConfigError(TrainingError, ValueError):
    """The configuration cannot be run; the message names the field and the way out."""

    cause = Cause.CONFIG


class DeviceError(ConfigError):
    """A device list is not one; the message names the offending token."""


class MissingDeviceError(DeviceError):
    """A device is named that this host does not have, or has no more."""


class DataError(TrainingError, ValueError):
    """The data set is missing, empty or unreadable; the message names the file or folder."""

    cause = Cause.DATA


class CheckpointError(TrainingError):
    """A checkpoint is missing, corrupt or does not fit the model; the message names the file."""

    cause = Cause.CHECKPOINT


class NonFiniteLossError(TrainingError):
    """The loss became NaN or infinite; the message names step and rank."""

    cause = Cause.NON_FINITE_LOSS


class DeviceMemoryError(TrainingError):
    """A device has too little memory for the smallest batch; the message says what takes less."""

    cause = Cause.OUT_OF_MEMORY


class JournalError(TrainingError):
    """A journal holds a line that is no record: the file was damaged or written by something else."""


class RunFailedError(TrainingError):
    """A run ended without completing; `cause` and the message come from its error file."""

    def __init__(self, message: str, *, cause: Cause) -> None:
        super().__init__(message)
        self.cause = cause


class RunInterruptedError(TrainingError):
    """A run was asked to end early and did, with its last checkpoint saved."""

    cause = Cause.INTERRUPTED
