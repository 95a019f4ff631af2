"""A rank that torchrun has started, by `torchrun … -m trainer train.yaml` or by a script that calls train()."""

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

import torch.distributed as dist

from trainer.caller import Call, calling, copied
from trainer.environment import RankEnvironment
from trainer.error_report import ErrorReport, error_of
from trainer.errors import Cause, ConfigError, RunInterruptedError
from trainer.launch import OTHER_REPORTS_S, POLL_S
from trainer.local_run import completion
from trainer.micro_batches import with_way_out
from trainer.parent_death import die_with_parent
from trainer.process_group import tell_end
from trainer.rank import end_with, report
from trainer.reporting import ProgressFile
from trainer.run_dir import RUN_DIR_VARIABLE, RunDir
from trainer.terminal import RunDisplay, say
from trainer.torchrun_meeting import Meeting, meet
from trainer.train_file import TrainFile
from trainer.training import run


def run_as_rank(file: TrainFile, environment: RankEnvironment, *, output: Path | None) -> NoReturn:
    """Train as the one rank that the environment says this process is, and end the process."""
    die_with_parent(os.getppid())  # a torchrun that is killed ends no rank
    rank = _Rank(environment, meet(file, environment, output=output, has_call=False, on_shared_folder=False))
    os.environ[RUN_DIR_VARIABLE] = str(rank.run_dir.path)

    def train() -> None:
        rank.train()
        if environment.rank == 0 and (completed := rank.run_dir.completed()):
            say(completion(rank.run_dir, completed))

    end_with(train, rank.tell)


def train_as_rank(file: TrainFile, environment: RankEnvironment, *, output: Path | None, call: Call | None) -> RunDir:
    """Train as the one rank that the environment says this process is, and return the run directory.

    Nothing of the run is left in the process: no process group, no signal handler; a model of the caller's own is
    trained as a copy. Raises ConfigError where the run cannot begin, RunInterruptedError and RunFailedError on every
    rank, with what ended this one as its cause.
    """
    if threading.current_thread() is not threading.main_thread():
        raise ConfigError(
            "train() under torchrun trains in the thread that calls it and hears the signals that stop a run, which "
            "only the main thread can: call it there"
        )
    if dist.is_initialized():
        raise ConfigError(
            "train() makes a process group of its own, and the script has one already: call train() before "
            "init_process_group() or after destroy_process_group()"
        )
    own = copied(call) if call is not None else Call(model=None, callbacks=())
    meeting = meet(file, environment, output=output, has_call=call is not None, on_shared_folder=True)
    rank = _Rank(environment, meeting)
    pid = os.getpid()
    with _handlers_given_back(), calling(own):
        failed = True
        try:
            rank.train()
            failed = False
        except (Exception, SystemExit) as error:
            if os.getpid() != pid:  # forked by the user's code, whose end is not this rank's
                raise
            loader_check = signal.getsignal(signal.SIGCHLD)  # torch's, which it sets but once in a process
            rank.tell(error)
            signal.signal(signal.SIGCHLD, loader_check)
            _let_go(error)
            told = rank.run_dir.read_error()
            if told is None or isinstance(error, RunInterruptedError):
                raise
            raise error_of(told, rank.run_dir.path) from error
        finally:
            if os.getpid() == pid:
                _leave_group(failed=failed)
    return rank.run_dir


@dataclass(frozen=True)
class _Rank:
    environment: RankEnvironment
    meeting: Meeting

    @property
    def run_dir(self) -> RunDir:
        return self.meeting.run_dir

    def train(self) -> None:
        if self.meeting.is_complete:
            return
        with _shown(self.run_dir) if self.environment.rank == 0 else nullcontext():
            progress = ProgressFile(self.run_dir, local_rank=self.environment.local_rank)
            progress.write("starting", 0)
            run(
                self.run_dir,
                self.meeting.config,
                environment=self.environment,
                store=self.meeting.store,
                progress=progress,
            )

    def tell(self, error: BaseException) -> int:
        """Say in this rank's error file what ended it, and in the run's if it is the first; return the exit status.

        No launcher of ours is there to compare what the ranks know, so the first that is at fault has the word, and one
        that has merely lost its peers only if none of them says why.
        """
        tell_end(self.meeting.store, rank=self.environment.rank)
        status = report(error, self.run_dir, self.environment)
        known = self.run_dir.read_rank_error(self.environment.local_rank)
        if isinstance(error, RunInterruptedError) and self.environment.rank == 0:
            known = ErrorReport(cause=Cause.INTERRUPTED, message=str(error), time=datetime.now(UTC))
        if known is None:
            return status
        known = with_way_out(known, self.meeting.config, is_relaunched=False)
        if known.cause is Cause.COMMUNICATION:
            deadline = time.monotonic() + OTHER_REPORTS_S
            while not self.run_dir.error.exists() and time.monotonic() < deadline:
                time.sleep(POLL_S)
            message = f"it lost its peers, and none has said why: what ended them, torchrun tells ({known.message})"
            known = known.model_copy(update={"message": message})
        with suppress(OSError):  # the disk is full: standard error has it in any case
            known.write_first(self.run_dir.error, writer=f"rank-{self.environment.rank}")
        return status


@contextmanager
def _shown(run_dir: RunDir) -> Iterator[None]:
    """Show the run on the terminal while it goes on in this thread."""
    is_over = threading.Event()

    def follow() -> None:
        while not is_over.wait(POLL_S):
            display.update()

    with RunDisplay(run_dir) as display:
        thread = threading.Thread(target=follow, name="run-display", daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()


@contextmanager
def _handlers_given_back() -> Iterator[None]:
    """Give the script back what a run takes over: the stop signals, and how uncaught exceptions are printed."""
    signals = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    excepthook = sys.excepthook
    try:
        yield
    finally:
        sys.excepthook = excepthook
        for number, handler in signals.items():
            signal.signal(number, handler)


def _let_go(error: BaseException | None) -> None:
    """Free what the failed run held, though the script may keep the error.

    The frames of its traceback hold the model, with its device memory, and connections: until those are closed, the
    other ranks wait for this one.
    """
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


def _leave_group(*, failed: bool) -> None:
    if not dist.is_initialized():
        return
    if failed and dist.get_backend() == "nccl":
        dist.distributed_c10d._abort_process_group()  # to destroy it is to wait for collectives that may never end
    else:
        dist.destroy_process_group()
