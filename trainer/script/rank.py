"""One rank of a script: the user's program in this process, and how it ended, told as for our own recipes."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

from trainer.environment import MASTER_FD_VARIABLE, RankEnvironment
from trainer.error_report import ErrorReport, safe_text
from trainer.errors import Cause, MissingDeviceError
from trainer.interrupting import raise_interrupts
from trainer.journal import CheckpointSaved, Completed, JournalWriter, Metrics, Started, read_records
from trainer.reporting import ProgressFile
from trainer.run_dir import EXIT_FAILED, EXIT_INTERRUPTED, RunConfig, RunDir
from trainer.script.options import script_options
from trainer.script.program import OurModules, enter, own_traceback, run
from trainer.script.store_server import serve_on_demand

_POLL_S = 0.05
_TEARDOWN_S = 5.0
"""Time that a program gets to end by itself once it has failed: its threads may wait for peers for ever."""


def run_script(
    run_dir: RunDir,
    config: RunConfig,
    environment: RankEnvironment,
    *,
    tell: Callable[[BaseException], int],
    at_exit: list[Callable[[], None]],
) -> None:
    """Run the program as this rank, and return: the process then ends as Python ends, by way of `at_exit`.

    So what the program leaves to its threads and to atexit is done, as it would be under torchrun, before all is said
    to be complete. `tell` says in this rank's error file what the program raised, and returns the exit status.
    """
    rank = _ScriptRank(run_dir, config, environment, tell)
    at_exit.append(rank.conclude)
    rank.run()


class _ScriptRank:
    def __init__(
        self,
        run_dir: RunDir,
        config: RunConfig,
        environment: RankEnvironment,
        tell: Callable[[BaseException], int],
    ) -> None:
        self._run_dir, self._config, self._environment, self._tell = run_dir, config, environment, tell
        self._progress = ProgressFile(run_dir, local_rank=environment.local_rank)
        self._modules = OurModules()
        self._pid = os.getpid()
        self._is_through = False
        """Whether the program has come to its end, or has left by a plain sys.exit()."""
        self._status = EXIT_FAILED
        """What to end with: a failure until all is done, so that nothing that goes wrong can pass for success."""

    def run(self) -> None:
        """Run the program; what ends it early is told at once.

        A process that the program forks comes back here as well: what it raises ends it as it would any, and is not
        this rank's to tell.
        """
        try:
            self._progress.write("starting", 0)
            options = script_options(self._config.train)
            self._begin()
            self._check_device()
            enter(options, otherwise=self._run_dir.path)
            self._modules.step_aside()
            raise_interrupts()  # what it makes of one is the program's own matter
            run(options)
            self._is_through = True
        except BaseException as error:
            if os.getpid() != self._pid:
                raise
            self._is_through = isinstance(error, SystemExit) and _is_success(error)
            if not self._is_through:
                self._end_by(error)

    def conclude(self) -> None:
        """End the process, once the program's threads and atexit callbacks are through."""
        if os.getpid() != self._pid:  # forked by the program, it has inherited what is called when Python ends
            return
        with self._modules.back():
            if self._is_through:
                try:
                    self._status = self._complete()
                except BaseException as error:  # noqa: BLE001  (such as a disk that is full)
                    self._end_by(error)
            for stream in (sys.stdout, sys.stderr):
                with suppress(OSError, ValueError):  # the log lies on a disk that may be full, or the program closed it
                    stream.flush()
            os._exit(self._status)

    def _begin(self) -> None:
        environment = self._environment
        # Gone, so that the program is to our own code what one under torchrun is: it may call train() itself.
        listener = os.environ.pop(MASTER_FD_VARIABLE, "")
        os.environ["ROLE_RANK"] = str(environment.rank)
        if listener:
            serve_on_demand(int(listener), environment)
        if environment.rank == 0:
            label = " (simulated)" if self._config.simulated else ""
            devices = tuple(f"{device}{label}" for device in self._config.devices)
            JournalWriter(self._run_dir.journal).append(
                Started,
                world_size=environment.world_size,
                devices=devices,
                resumed_step=self._config.resume_step,
            )

    def _check_device(self) -> None:
        """Raise MissingDeviceError for a CUDA device that is not there: the program might train on the CPU instead."""
        device = self._config.devices[self._environment.local_rank]
        if self._config.simulated or not device.startswith("cuda"):
            return
        import torch  # as what is to run on such a device does in any case

        if self._environment.local_rank >= torch.cuda.device_count():  # which looks without touching any
            raise MissingDeviceError(f"device: {device!r} is not on this host, or torch cannot use it")

    def _end_by(self, error: BaseException) -> None:
        """Tell what ended the program, and leave it a moment to end as Python ends."""
        error.__traceback__ = own_traceback(error)
        with self._modules.back():
            self._status = self._tell_exit(error) if isinstance(error, SystemExit) else self._tell(error)
        with suppress(Exception):
            if not isinstance(error, SystemExit):
                sys.excepthook(type(error), error, error.__traceback__)
            elif not isinstance(error.code, int):
                sys.stderr.write(f"{error.code}\n")
        last_moment = threading.Timer(_TEARDOWN_S, os._exit, [self._status])
        last_moment.daemon = True
        last_moment.start()

    def _tell_exit(self, end: SystemExit) -> int:
        status, asked = EXIT_FAILED, ""
        if isinstance(end.code, int):
            # No more than a byte reaches a parent: sys.exit(256), after an os.system() that failed, looks well to it.
            status = end.code & 0xFF or EXIT_FAILED
            asked = f", asked for by sys.exit({safe_text(end.code)})" if end.code != status else ""
        local_rank, log = self._environment.local_rank, self._run_dir.log(self._environment.local_rank)
        why = f"see {log}" if isinstance(end.code, int) else safe_text(end.code)
        report = ErrorReport(
            cause=Cause.EXCEPTION,
            message=f"the program ended with exit status {status}{asked}: {why}"[:2000],
            time=datetime.now(UTC),
            rank=self._environment.rank,
            exit_code=status,
        )
        with suppress(OSError):  # a full disk: the exit status still says it
            report.write(self._run_dir.rank_error(local_rank))
        return status

    def _complete(self) -> int:
        """Say that this rank is through; as rank 0, once all are, that the run is complete. Return the exit status."""
        with suppress(ValueError):  # only the main thread may, which this is but where the program has played tricks
            _forget_handlers()
        if self._environment.rank == 0:
            while self._is_awaited() and not self._run_dir.is_stopping():
                time.sleep(_POLL_S)  # a rank that fails is seen by the launcher, which then ends this process
        if self._run_dir.is_stopping() or "stopped" in self._phases():
            # The program may have come to its end, or saved and left: only one that runs anew can tell.
            self._progress.write("stopped", self._step())
            return EXIT_INTERRUPTED
        self._progress.write("finished", complete(self._run_dir) if self._environment.rank == 0 else 0)
        return 0

    def _is_awaited(self) -> bool:
        """Whether some other rank has not come to its end yet, and none has been stopped."""
        return not self._phases() <= {"finished"} and "stopped" not in self._phases()

    def _phases(self) -> set[str]:
        """What the other ranks are at."""
        others = [rank for rank in range(self._config.local_world_size) if rank != self._environment.local_rank]
        reached = [self._run_dir.read_progress(rank) for rank in others]
        return {"starting" if progress is None else progress.phase for progress in reached}

    def _step(self) -> int:
        """The step that the program has reported last."""
        reached = self._run_dir.read_progress(self._environment.local_rank)
        return reached.step if reached is not None else 0


def _forget_handlers() -> None:
    """Put an end to the program's signal handlers: what they would do is of no use any more.

    One that reported in the middle of our record would wait for ever: the program has the modules of its reports, and
    with them its turns at the journal, to itself.
    """
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for number in signal.valid_signals():
        if callable(handler := signal.getsignal(number)) and handler is not signal.default_int_handler:
            signal.signal(number, lambda *_: None)


def _is_success(end: SystemExit) -> bool:
    """Whether Python ends with status 0 on it. That is for no value but None and a whole 0: 0.0 is a text to print."""
    return end.code is None or (isinstance(end.code, int) and end.code == 0)


def complete(run_dir: RunDir) -> int:
    """Append the completion record, which says what the program has reported last, and return the step in it."""
    step = epoch = 0
    values: dict[str, float | None] = {}
    best = last = None
    for record in read_records(run_dir.journal):
        if isinstance(record, Metrics):
            step, epoch = record.step, record.epoch
            values |= record.values
        elif isinstance(record, CheckpointSaved):
            last = record.path
            best = record.path if record.best else best
    JournalWriter(run_dir.journal).append(
        Completed, durable=True, step=step, epoch=epoch, values=values, best_checkpoint=best or last
    )
    return step
