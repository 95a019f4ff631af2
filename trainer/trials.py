"""Trials: short runs of a train.yaml on chosen numbers of ranks, in run directories that are gone afterwards.

Loads no torch of its own, so that a command that runs trials can answer `--help` at once.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from trainer.config import TrainConfig
from trainer.environment import is_rank
from trainer.error_report import ErrorReport
from trainer.errors import Cause, ConfigError, RunFailedError, RunInterruptedError, with_cause
from trainer.interrupting import interruptible
from trainer.journal import Completed
from trainer.outcome import Outcome, exit_status
from trainer.run_dir import RunConfig, RunDir
from trainer.terminal import say
from trainer.train_file import TrainFile

_LOG_LINES = 30
"""How much of a rank's log is shown where the rank could not say itself what ended it."""


def status_of(command: Callable[[], int]) -> int:
    """Call what runs trials; return the exit status: its own, or what stands for the end of a trial, which is said.

    What cannot be run (ConfigError, DataError) is raised as it is.
    """
    try:
        with interruptible():
            return command()
    except (RunFailedError, RunInterruptedError) as error:
        say(with_cause(error.cause, str(error)))
        return exit_status(error.cause)


def refuse_inside_run(what: str) -> None:
    """Raise ConfigError where this process is a rank, or imported by one: trials start ranks of their own."""
    from trainer.caller import refuse_call_inside_run  # imports torch

    refuse_call_inside_run(f"{what}()")
    if is_rank(os.environ):
        raise ConfigError(f"{what}: it starts its own ranks; run it without torchrun")


def named_devices(file: TrainFile) -> tuple[str, ...]:
    """Return the devices that a file names, or what "auto" means here."""
    if file.device == "auto":
        return TrainFile(file.train).run_config().devices
    return tuple(file.device.split(","))


def placed(train: TrainConfig, devices: Sequence[str], world_size: int) -> TrainFile:
    """Return the training on so many ranks: on the first of the devices, or all on the CPU."""
    if devices[0] == "cpu":
        return TrainFile(train, device="cpu", nproc_per_node=world_size)
    return TrainFile(train, device=",".join(devices[:world_size]))


@contextmanager
def temporary_folder(purpose: str) -> Iterator[Path]:
    """A folder that is gone at the end, also where a signal that stops a run comes between two runs.

    What a process that was killed has left behind, the next one with the same purpose removes.
    """
    prefix = f"rankzero-{purpose}-"
    with interruptible() as ignore_signals:
        _remove_abandoned(prefix)
        folder, held = _held_folder(prefix)
        try:
            yield folder
        finally:
            ignore_signals()
            shutil.rmtree(folder)
            os.close(held)


def _held_folder(prefix: str) -> tuple[Path, int]:
    """Make a folder that is locked for as long as this process lives, or until the descriptor is closed."""
    unheld = Path(tempfile.mkdtemp(prefix=f".{prefix}"))
    held = os.open(unheld, os.O_RDONLY)
    with suppress(OSError):  # not every file system of a network has locks: there, none is found to be abandoned either
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    # It gets its name only now, so that nobody finds it unlocked.
    return unheld.rename(unheld.with_name(unheld.name.removeprefix("."))), held


def _remove_abandoned(prefix: str) -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        with suppress(OSError):  # somebody holds it, or it is another user's
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder)
            finally:
                os.close(descriptor)


def complete(run_dir: RunDir, config: RunConfig, run: Callable[[RunDir], Outcome]) -> Completed:
    """Run a prepared run directory to its end.

    Raises RunFailedError with all that is to be known of a failure, since the directory is about to go, and
    RunInterruptedError where a signal ended it.
    """
    outcome = run(run_dir)
    if outcome.completed is not None:
        return outcome.completed
    assert outcome.error is not None
    on = f"on {config.world_size} ranks" if config.world_size > 1 else "on one rank"
    if outcome.error.cause is Cause.INTERRUPTED:
        raise RunInterruptedError(f"stopped in the run {on}; nothing of it is kept")
    raise RunFailedError(f"the run {on} failed: {_last_words(run_dir, outcome.error)}", cause=outcome.error.cause)


def _last_words(run_dir: RunDir, error: ErrorReport) -> str:
    if error.cause is not Cause.EXCEPTION or error.rank is None:
        return error.said
    log = run_dir.log(error.rank)
    tail = log.read_text(errors="replace").splitlines()[-_LOG_LINES:] if log.exists() else []
    return "\n".join([error.said, error.traceback or "\n".join(tail)])
