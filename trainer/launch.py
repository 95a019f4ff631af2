"""The launcher: starts one rank per device, watches them, and says how the run ended. Never imports torch."""

import fcntl
import os
import signal
import socket
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from types import FrameType

from pydantic import ValidationError

from trainer.devices import per_rank_batch
from trainer.environment import MASTER_FD_VARIABLE, RankEnvironment, machine_defaults
from trainer.error_report import ErrorReport, signal_name
from trainer.errors import Cause, ConfigError, os_error_cause
from trainer.journal import Completed
from trainer.parent_death import PARENT_PID_VARIABLE
from trainer.rank_process import RankProcess, StartMethod, fresh_interpreter
from trainer.run_dir import EXIT_DISK_FULL, EXIT_FAILED, EXIT_INTERRUPTED, RUN_DIR_VARIABLE, RunConfig, RunDir
from trainer.validation import describe

_POLL_S = 0.05
_OTHER_REPORTS_S = 2.0
"""How long after the first failure the other ranks get to say what they know: the first seen is seldom the cause."""
_TERMINATE_S = 2.0
"""Time between SIGTERM and SIGKILL for the ranks that are left after a failure; they may be stuck in a collective."""
_TEARDOWN_S = 10.0
"""Time for the ranks to end by themselves once the completion record is written."""
DEFAULT_GRACE_S = 30.0
"""Time for all ranks to stop at a common step and save, once asked to."""


class RunDirBusyError(ConfigError):
    """Another launcher is at work in the run directory."""


@dataclass(frozen=True)
class Outcome:
    """How a run ended: with a completion record, or with an error that is also in error.json, should there be room."""

    completed: Completed | None = None
    error: ErrorReport | None = None
    disk_is_full: bool = False
    """There was no room for error.json."""

    @property
    def exit_status(self) -> int:
        if self.completed is not None:
            return 0
        assert self.error is not None
        if self.error.cause is Cause.INTERRUPTED:
            return EXIT_INTERRUPTED
        return EXIT_DISK_FULL if self.disk_is_full or self.error.cause is Cause.DISK_FULL else EXIT_FAILED


def launch(
    run_dir: RunDir,
    *,
    start: StartMethod = fresh_interpreter,
    grace_s: float = DEFAULT_GRACE_S,
    watch: Callable[[], None] = lambda: None,
) -> Outcome:
    """Run what config.json says, to its end, and leave no process behind.

    `watch` is called about 20 times a second while the ranks run. SIGINT, SIGTERM and SIGHUP (unless it is ignored)
    stop the ranks at a common step with a checkpoint saved; a second signal, or `grace_s` seconds, ends them at once. A
    directory whose run is complete is left as it is; one that was interrupted continues from its last checkpoint.

    Call it from the main thread, or from one that lives until it returns: the ranks die with the thread (Linux).
    An OSError of the launcher's own is the run's error, as one of a rank is. What `watch` raises beside OSError ends
    the ranks and is raised. Raises ConfigError, before any process is started, for a configuration that cannot run or
    a directory in use, and JournalError for a journal that is damaged.
    """
    config = _read_config(run_dir)
    per_rank_batch(config.train.batch, len(config.devices))
    with _exclusive(run_dir):
        if completed := run_dir.completed():
            return Outcome(completed=completed)
        try:
            for folder in (run_dir.ranks, run_dir.checkpoints):
                folder.mkdir(exist_ok=True)
            _forget_failure(run_dir, len(config.devices))
            with _stop_signals() as stop:
                return _Launch(run_dir, config, stop, grace_s, watch).run(start)
        except OSError as error:
            if completed := run_dir.completed():
                return Outcome(completed=completed)
            text = "".join(traceback.format_exception(error))
            return _failed(run_dir, ErrorReport.of(error, cause=os_error_cause(error), rank=None, traceback=text))


def _read_config(run_dir: RunDir) -> RunConfig:
    try:
        return run_dir.read_config()
    except OSError as error:
        raise ConfigError(f"{run_dir.config}: not readable: {error}") from error
    except ValidationError as error:
        raise ConfigError(f"{run_dir.config}: {describe(error)}") from error


class StopRequest:
    """What was asked of the launcher by signals so far."""

    def __init__(self) -> None:
        self.signals: list[signal.Signals] = []

    def handle(self, number: int, _frame: FrameType | None) -> None:
        self.signals.append(signal.Signals(number))


class _Launch:
    """One set of ranks, from their start to their end."""

    def __init__(
        self, run_dir: RunDir, config: RunConfig, stop: StopRequest, grace_s: float, watch: Callable[[], None]
    ) -> None:
        self.run_dir, self.config, self.stop, self.grace_s, self.watch = run_dir, config, stop, grace_s, watch
        self.ranks: list[RankProcess] = []
        self.ended: dict[int, tuple[int, datetime]] = {}
        """Exit status of each rank that has ended by itself, and when that was seen."""

    def run(self, start: StartMethod) -> Outcome:
        try:
            self._start_all(start)
            self._wait()
        finally:
            self._end_all()
        self.watch()
        return self._outcome()

    def _start_all(self, start: StartMethod) -> None:
        world_size = len(self.config.devices)
        # The socket is bound here and handed over, so no other run can take the port in between.
        with socket.create_server(("127.0.0.1", 0), backlog=1024) as rendezvous:
            port = rendezvous.getsockname()[1]
            for rank in range(world_size):
                variables = RankEnvironment(
                    rank=rank,
                    local_rank=rank,
                    world_size=world_size,
                    local_world_size=world_size,
                    master_port=port,
                ).variables()
                environment = os.environ | machine_defaults(os.environ, local_world_size=world_size) | variables
                environment[RUN_DIR_VARIABLE] = run_dir_tag(self.run_dir)
                environment[PARENT_PID_VARIABLE] = str(os.getpid())
                inherited = [rendezvous.fileno()] if rank == 0 else []
                environment[MASTER_FD_VARIABLE] = ",".join(map(str, inherited))
                self.ranks.append(start(environment=environment, log=self.run_dir.log(rank), inherited=inherited))

    def _wait(self) -> None:
        """Return when all ranks have ended by themselves, or when those that are left have to be ended."""
        told = 0
        deadline = float("inf")
        while len(self.ended) < len(self.ranks):
            self._collect()
            now = time.monotonic()
            if len(self.stop.signals) > told:
                told = len(self.stop.signals)
                deadline = min(deadline, now + self.grace_s) if told == 1 else now
                self._terminate()
            if self._failed():
                # A rank that is gone takes part in no common step, whether or not we asked for one.
                deadline = min(deadline, now + _OTHER_REPORTS_S)
            elif 0 in self.ended:
                deadline = min(deadline, now + _TEARDOWN_S)
            if now >= deadline:
                return
            self.watch()
            time.sleep(_POLL_S)

    def _collect(self) -> None:
        for rank, process in enumerate(self.ranks):
            if rank not in self.ended and (status := process.poll()) is not None:
                self.ended[rank] = (status, datetime.now(UTC))

    def _failed(self) -> bool:
        return any(status not in (0, EXIT_INTERRUPTED) for status, _ in self.ended.values())

    def _terminate(self) -> None:
        for rank, process in enumerate(self.ranks):
            if rank not in self.ended:
                process.terminate()

    def _end_all(self) -> None:
        """Leave no process: ask those that are left, then kill each rank's whole group."""
        self._collect()
        left = [process for rank, process in enumerate(self.ranks) if rank not in self.ended]
        if left and not self.stop.signals:
            self._terminate()
            deadline = time.monotonic() + _TERMINATE_S
            while any(process.poll() is None for process in left) and time.monotonic() < deadline:
                time.sleep(_POLL_S)
        for process in self.ranks:
            process.kill()

    def _outcome(self) -> Outcome:
        if completed := self.run_dir.completed():
            return Outcome(completed=completed)  # whatever happened in the teardown afterwards
        error = self._first_failure()
        if self.stop.signals and (error is None or error.cause in (Cause.COMMUNICATION, Cause.KILLED_BY_SIGNAL)):
            error = self._interruption(f"stopped by {self.stop.signals[0].name}")
        elif error is None and any(status == EXIT_INTERRUPTED for status, _ in self.ended.values()):
            error = self._interruption("a rank was asked to stop")
        elif error is None:
            rank, (status, seen) = min(self.ended.items(), key=lambda item: item[1][1])
            message = f"rank {rank} ended with exit status {status} before the run was complete"
            error = ErrorReport(cause=Cause.EXCEPTION, message=message, time=seen, rank=rank, exit_code=status)
        return _failed(self.run_dir, error)

    def _first_failure(self) -> ErrorReport | None:
        """Return the report of the rank at fault: the first by time; one that merely lost its peers, last."""
        reports = [report for report in map(self._report, range(len(self.ranks))) if report is not None]
        return min(reports, key=lambda report: (report.cause is Cause.COMMUNICATION, report.time), default=None)

    def _report(self, rank: int) -> ErrorReport | None:
        if report := self.run_dir.read_rank_error(rank):
            return report
        status, seen = self.ended.get(rank, (0, datetime.now(UTC)))
        if status in (0, EXIT_INTERRUPTED):
            return None
        if status < 0:
            name = signal_name(-status)
            hint = " (by hand, or by the kernel because memory ran out)" if name == "SIGKILL" else ""
            message = f"rank {rank} was ended by {name}{hint}"
            return ErrorReport(cause=Cause.KILLED_BY_SIGNAL, message=message, time=seen, rank=rank, signal=name)
        if status == EXIT_DISK_FULL:
            cause, why = Cause.DISK_FULL, "no space was left on the disk, not even to say more"
        else:
            cause, why = Cause.EXCEPTION, f"see {self.run_dir.log(rank)}"
        message = f"rank {rank} ended with exit status {status}: {why}"
        return ErrorReport(cause=cause, message=message, time=seen, rank=rank, exit_code=status)

    def _interruption(self, reason: str) -> ErrorReport:
        saved = self.run_dir.last_checkpoint()
        at = f"; the last checkpoint is {saved.path}" if saved else "; no checkpoint had been saved"
        return ErrorReport(cause=Cause.INTERRUPTED, message=f"{reason}{at}", time=datetime.now(UTC))


def run_dir_tag(run_dir: RunDir) -> str:
    """Return RANKZERO_RUN_DIR as each process of the run carries it: in the spelling that its starter looks for."""
    given = os.environ.get(RUN_DIR_VARIABLE, "")
    if given and os.path.realpath(given) == os.path.realpath(run_dir.path):
        return given
    return str(run_dir.path.absolute())


@contextmanager
def _exclusive(run_dir: RunDir) -> Iterator[None]:
    """Hold the run directory: two launchers writing one journal would spoil it. The kernel lets go when we end."""
    with run_dir.config.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise RunDirBusyError(f"{run_dir.path}: a run is already going on in this run directory") from error
        yield


@contextmanager
def _stop_signals() -> Iterator[StopRequest]:
    """Collect SIGINT, SIGTERM and SIGHUP instead of dying of them, and give the caller's handlers back afterwards."""
    stop = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield stop  # Python allows handlers in the main thread only; there the caller decides about signals
        return
    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # under nohup, a closed terminal is not to end the run
        numbers.append(signal.SIGHUP)
    previous = {number: signal.signal(number, stop.handle) for number in numbers}
    try:
        yield stop
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _failed(run_dir: RunDir, error: ErrorReport) -> Outcome:
    """Write error.json. A disk that is full must not hide the error: the outcome carries it to whoever started us."""
    try:
        error.write(run_dir.error)
    except OSError as unwritten:
        return Outcome(error=error, disk_is_full=os_error_cause(unwritten) is Cause.DISK_FULL)
    return Outcome(error=error)


def _forget_failure(run_dir: RunDir, ranks: int) -> None:
    """Remove what an earlier, interrupted run in this directory said about its end."""
    for path in (run_dir.error, *(run_dir.rank_error(rank) for rank in range(ranks))):
        with suppress(FileNotFoundError):
            path.unlink()
