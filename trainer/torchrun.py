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
from typing import TYPE_CHECKING, NoReturn

import torch.distributed as dist

from trainer.caller import Call, calling, copied, refuse_call_inside_run
from trainer.command import new_run_dir
from trainer.environment import RankEnvironment
from trainer.error_report import ErrorReport, error_of
from trainer.errors import Cause, ConfigError, RunInterruptedError
from trainer.parent_death import die_with_parent
from trainer.process_group import connect, shared
from trainer.rank import end_with, report
from trainer.reporting import ProgressFile
from trainer.run_dir import RUN_DIR_VARIABLE, RunConfig, RunDir
from trainer.terminal import RunDisplay, say
from trainer.train_file import TrainFile
from trainer.training import run

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Store

_OTHER_REPORTS_S = 2.0
"""How long a rank that has merely lost its peers waits for one of them to say why."""
_POLL_S = 0.05


def run_as_rank(file: TrainFile, environment: RankEnvironment, *, output: Path | None) -> NoReturn:
    """Train as the one rank that the environment says this process is, and end the process."""
    die_with_parent(os.getppid())  # a torchrun that is killed ends no rank
    rank = _Rank.enter(file, environment, output=output)
    os.environ[RUN_DIR_VARIABLE] = str(rank.run_dir.path)

    def train() -> None:
        rank.train()
        if environment.rank == 0 and (completed := rank.run_dir.completed()):
            say(f"completed: best checkpoint {rank.run_dir.path / completed.best_checkpoint}")

    end_with(train, rank.tell)


def train_as_rank(file: TrainFile, environment: RankEnvironment, *, output: Path | None, call: Call | None) -> RunDir:
    """Train as the one rank that the environment says this process is, and return the run directory.

    Nothing of the run is left in the process: no process group, no signal handler; a model of the caller's own is
    trained as a copy. Raises ConfigError where the run cannot begin, RunInterruptedError and RunFailedError on every
    rank, with what ended this one as its cause.
    """
    refuse_call_inside_run()
    if dist.is_initialized():
        raise ConfigError(
            "train() makes a process group of its own, and the script has one already: call train() before "
            "init_process_group() or after destroy_process_group()"
        )
    own = copied(call) if call is not None else Call(model=None, callbacks=())
    rank = _Rank.enter(file, environment, output=output, has_call=call is not None)
    if not rank.run_dir.config.exists():
        raise ConfigError(
            f"output: rank 0's run directory, {rank.run_dir.path}, is not to be seen on this host; train() under "
            "torchrun needs one on a file system that all hosts share"
        )
    with _handlers_given_back(), calling(own):
        failed = True
        try:
            rank.train()
            failed = False
        except (Exception, SystemExit) as error:
            loader_check = signal.getsignal(signal.SIGCHLD)  # torch's, which it sets but once in a process
            rank.tell(error)
            signal.signal(signal.SIGCHLD, loader_check)
            _let_go(error)
            told = rank.run_dir.read_error()
            if told is None or isinstance(error, RunInterruptedError):
                raise
            raise error_of(told, rank.run_dir.path) from error
        finally:
            _leave_group(failed=failed)
    return rank.run_dir


@dataclass(frozen=True)
class _Rank:
    environment: RankEnvironment
    config: RunConfig
    store: "Store | None"
    run_dir: RunDir

    @classmethod
    def enter(
        cls, file: TrainFile, environment: RankEnvironment, *, output: Path | None, has_call: bool = False
    ) -> "_Rank":
        """Meet the others. Rank 0 makes the run directory; the others learn of it through torchrun's store."""
        config = file.run_config_under_torchrun(environment).model_copy(update={"call": has_call})
        store = connect(environment, config)
        path = ""
        if environment.rank == 0:
            run_dir = RunDir(new_run_dir(output).resolve())
            run_dir.create(config)
            path = str(run_dir.path)
            say(f"run directory: {path}")
        return cls(environment, config, store, RunDir(Path(shared(store, "run_dir", path, rank=environment.rank))))

    def train(self) -> None:
        self.run_dir.ranks.mkdir(parents=True, exist_ok=True)  # on another host, rank 0 has made nothing
        with _shown(self.run_dir) if self.environment.rank == 0 else nullcontext():
            progress = ProgressFile(self.run_dir, local_rank=self.environment.local_rank)
            progress.write("starting", 0)
            run(self.run_dir, self.config, environment=self.environment, store=self.store, progress=progress)

    def tell(self, error: BaseException) -> int:
        """Say in this rank's error file what ended it, and in the run's if it is the first; return the exit status.

        No launcher of ours is there to compare what the ranks know, so the first that is at fault has the word, and one
        that has merely lost its peers only if none of them says why.
        """
        status = report(error, self.run_dir, self.environment)
        known = self.run_dir.read_rank_error(self.environment.local_rank)
        if isinstance(error, RunInterruptedError) and self.environment.rank == 0:
            known = ErrorReport(cause=Cause.INTERRUPTED, message=str(error), time=datetime.now(UTC))
        if known is None:
            return status
        if known.cause is Cause.COMMUNICATION:
            deadline = time.monotonic() + _OTHER_REPORTS_S
            while not self.run_dir.error.exists() and time.monotonic() < deadline:
                time.sleep(_POLL_S)
            message = f"it lost its peers, and none has said why: what ended them, torchrun tells ({known.message})"
            known = known.model_copy(update={"message": message})
        temporary = self.run_dir.error.with_name(f".error-{self.environment.rank}.json")
        with suppress(OSError):  # one was there first, or the disk is full: standard error has it in any case
            known.write(temporary)
            os.link(temporary, self.run_dir.error)
        with suppress(OSError):
            temporary.unlink()
        return status


@contextmanager
def _shown(run_dir: RunDir) -> Iterator[None]:
    """Show the run on the terminal while it goes on in this thread."""
    is_over = threading.Event()

    def follow() -> None:
        while not is_over.wait(_POLL_S):
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
