"""One rank of a run, as a process: `python -m trainer.rank`, started by trainer.launch."""

import atexit
import os
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from trainer.interrupting import die_of_interrupts, raise_interrupts
from trainer.parent_death import die_with_parent
from trainer.stack_dump import answer_signals, leave_signals

if TYPE_CHECKING:
    from trainer.environment import RankEnvironment
    from trainer.error_report import ErrorReport
    from trainer.faults import SignalHandler
    from trainer.run_dir import RunConfig, RunDir


def main() -> None:
    """Run the rank that the environment describes, and end this process with the status that says how it went."""
    die_with_parent()  # before all else: the imports take seconds, and the launcher may be killed meanwhile
    # In an import a KeyboardInterrupt may come out as that module's own error: it would pass for the program's fault.
    die_of_interrupts()
    answer_signals()
    at_exit = _last_words()
    from trainer.environment import RankEnvironment
    from trainer.run_dir import RUN_DIR_VARIABLE, RunDir

    environment = RankEnvironment.read(os.environ)
    run_dir = RunDir(Path(os.environ[RUN_DIR_VARIABLE]))

    script = _script_config(run_dir)
    if script is not None:
        if script.hang_limit_s is None:
            leave_signals()  # nobody will ask, and to the program the signal is what it is under torchrun
        from trainer.script.rank import run_script

        def is_stop(_interrupt: KeyboardInterrupt) -> bool:
            return run_dir.is_stopping()  # the launcher's word: a program may raise the like by itself

        tell = partial(report, run_dir=run_dir, environment=environment, is_stop=is_stop)
        run_script(run_dir, script, environment, tell=tell, at_exit=at_exit)
    else:
        end_with(lambda: _train(run_dir, environment), partial(report, run_dir=run_dir, environment=environment))


def _last_words() -> list[Callable[[], None]]:
    """Return a list of what is called when Python ends, after all that is registered for that from here on."""
    functions: list[Callable[[], None]] = []
    atexit.register(lambda: [function() for function in functions])
    return functions


def _script_config(run_dir: "RunDir") -> "RunConfig | None":
    """Return the configuration where it is a script that runs; one that cannot be read is told of elsewhere."""
    from trainer.config import SCRIPT

    with suppress(OSError, ValueError):
        config = run_dir.read_config()
        return config if config.train.recipe == SCRIPT else None
    return None


def end_with(body: Callable[[], None], tell: Callable[[BaseException], int]) -> NoReturn:
    """Call `body` and end this process, at once: a teardown among dead peers might never return.

    `tell` is called with what ended the body early, and returns the exit status. A process that the user's code forks
    comes back here as well: how it ends is not this process's to tell.
    """
    pid = os.getpid()
    try:
        body()
        status = 0
    except BaseException as error:  # noqa: BLE001  (whatever ends a rank is reported, not only what we foresee)
        from trainer.run_dir import EXIT_INTERRUPTED

        if os.getpid() != pid:
            # Here, where the error keeps the loaders that were inherited: to let go of one stops the rank's own.
            _leave(_status_under_python(error))
        if (status := tell(error)) != EXIT_INTERRUPTED:
            _print_exception(error)
    _leave(status)


def _leave(status: int) -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # the log lies on a disk that may be full, or user code closed the stream
            stream.flush()
    os._exit(status)


def _status_under_python(error: BaseException) -> int:
    """Say on standard error what ends a process, and return the status that Python would end with."""
    if not isinstance(error, SystemExit):
        _print_exception(error)
        return 1
    if error.code is None or isinstance(error.code, int):
        return (error.code or 0) & 0xFF
    with suppress(OSError, ValueError):
        sys.stderr.write(f"{error.code}\n")
    return 1


def _is_unheard_signal(_interrupt: KeyboardInterrupt) -> bool:
    """Whether it is SIGINT before training hears that itself; any later, the user's own code has raised it."""
    return signal.getsignal(signal.SIGINT) is signal.default_int_handler


def report(
    error: BaseException,
    run_dir: "RunDir",
    environment: "RankEnvironment",
    *,
    is_stop: Callable[[KeyboardInterrupt], bool] = _is_unheard_signal,
) -> int:
    """Say in this rank's error file what ended it; return the exit status. `is_stop` says which interrupt is a stop."""
    from trainer.errors import RunInterruptedError
    from trainer.run_dir import EXIT_INTERRUPTED

    if isinstance(error, RunInterruptedError) or (isinstance(error, KeyboardInterrupt) and is_stop(error)):
        _tell_stop(run_dir, environment.local_rank)
        return EXIT_INTERRUPTED
    try:
        # torch raises out of this signal's handler when a loader process dies: not into our report, please.
        loader_check = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        return _report(error, run_dir, environment, loader_check=loader_check)
    except RuntimeError as loader_death:  # it was quicker
        return _report(loader_death, run_dir, environment)


def _train(run_dir: "RunDir", environment: "RankEnvironment") -> None:
    from trainer.process_group import connect  # torch, from here on
    from trainer.reporting import ProgressFile
    from trainer.training import run

    raise_interrupts()
    progress = ProgressFile(run_dir, local_rank=environment.local_rank)
    progress.write("starting", 0)  # not before the imports: how long they take is the host's matter (quiet_limit_s)
    config = run_dir.read_config()
    store = connect(
        environment,
        config,
        tell=lambda present: progress.write("starting", 0, present=present),
        alive=progress.alive,
    )
    run(run_dir, config, environment=environment, store=store, progress=progress)


def _report(
    error: BaseException,
    run_dir: "RunDir",
    environment: "RankEnvironment",
    *,
    loader_check: "SignalHandler" = None,
) -> int:
    from trainer.errors import Cause, os_error_cause
    from trainer.run_dir import EXIT_DISK_FULL, EXIT_FAILED

    report = _described(error, environment.rank, loader_check)
    status = EXIT_FAILED
    try:
        report.write(run_dir.rank_error(environment.local_rank))
    except OSError as unwritten:
        if Cause.DISK_FULL in (report.cause, os_error_cause(unwritten)):
            status = EXIT_DISK_FULL  # the launcher has no more than this to tell the cause by
        _print_exception(unwritten)
    return status


def _described(error: BaseException, rank: int, loader_check: "SignalHandler") -> "ErrorReport":
    if "torch" in sys.modules:
        from trainer.faults import report_of

        return report_of(error, rank=rank, loader_check=loader_check)
    # Nothing of torch's can have been raised, and to load it takes seconds, or fails as it has before.
    from trainer.error_report import ErrorReport, traceback_of
    from trainer.errors import Cause, TrainingError, os_error_cause

    cause = Cause.OUT_OF_MEMORY if isinstance(error, MemoryError) else Cause.EXCEPTION
    if isinstance(error, TrainingError):
        cause = error.cause
    elif isinstance(error, OSError):
        cause = os_error_cause(error)
    return ErrorReport.of(error, cause=cause, rank=rank, traceback=traceback_of(error))


def _tell_stop(run_dir: "RunDir", local_rank: int) -> None:
    from trainer.reporting import ProgressFile

    reached = run_dir.read_progress(local_rank)
    with suppress(OSError):
        ProgressFile(run_dir, local_rank=local_rank).write("stopped", reached.step if reached else 0)


def _print_exception(error: BaseException) -> None:
    """Print a traceback into the log, which may lie on the very disk that is full."""
    with suppress(OSError, ValueError):
        traceback.print_exception(error)


if __name__ == "__main__":
    main()
