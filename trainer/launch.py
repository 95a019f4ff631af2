"""The launcher: starts this node's ranks, watches them, and leaves none behind. Never imports torch."""

import errno
import fcntl
import os
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from types import FrameType

from pydantic import ValidationError

from trainer.config import SCRIPT
from trainer.environment import MASTER_FD_VARIABLE, RankEnvironment, machine_defaults
from trainer.error_report import ErrorReport
from trainer.errors import ConfigError, os_error_cause
from trainer.hang_report import report_hang
from trainer.hang_watch import HangWatch
from trainer.interrupting import stop_signals
from trainer.micro_batches import with_way_out
from trainer.oom_kills import OomKills
from trainer.outcome import Outcome, RankEnd, conclude, failed
from trainer.parent_death import PARENT_PID_VARIABLE
from trainer.placement import check_placement
from trainer.rank_process import RankProcess, StartMethod, fresh_interpreter
from trainer.relaunch import commit, last_seq, smaller_parts
from trainer.rendezvous import is_on_loopback, open_rendezvous
from trainer.run_dir import RUN_DIR_VARIABLE, RunConfig, RunDir
from trainer.script.surroundings import surroundings
from trainer.validation import describe

POLL_S = 0.05
"""How often whoever waits for a run looks again."""
OTHER_REPORTS_S = 2.0
"""How long after the first failure the other ranks get to say what they know: the first seen is seldom the cause."""
_TERMINATE_S = 2.0
"""Time between SIGTERM and SIGKILL for the ranks that are left after a failure; they may be stuck in a collective."""
_TEARDOWN_S = 10.0
"""Time for the ranks to end by themselves once the completion record is written."""
DEFAULT_GRACE_S = 30.0
"""Time for all ranks to stop at a common step and save, once asked to."""


class RunDirBusyError(ConfigError):
    """Another launcher is at work in the run directory."""


def launch(
    run_dir: RunDir,
    *,
    start: StartMethod = fresh_interpreter,
    grace_s: float = DEFAULT_GRACE_S,
    watch: Callable[[], None] = lambda: None,
) -> Outcome:
    """Run this node's share of what config.json says, to the end, and leave no process behind.

    `watch` is called about 20 times a second while the ranks run. SIGINT, SIGTERM and SIGHUP (unless it is ignored)
    stop the ranks at a common step with a checkpoint saved; a second signal, or `grace_s` seconds, ends them at once. A
    directory whose run is complete is left as it is; one that was interrupted continues from its last checkpoint. Ranks
    that run out of a device's memory are started anew on smaller parts of the batch (trainer.relaunch).

    Call it from the main thread, or from one that lives until it returns: the ranks die with the thread (Linux).
    An OSError of the launcher's own is the run's error, as one of a rank is. What `watch` raises beside OSError ends
    the ranks and is raised. Raises ConfigError, before any process is started, for a configuration that cannot run or
    a directory in use, and JournalError for a journal that is damaged.
    """
    with _exclusive(run_dir):
        config = _read_config(run_dir)
        check_placement(config)
        if completed := run_dir.completed():
            return Outcome(completed=completed)
        try:
            for folder in (run_dir.ranks, run_dir.checkpoints):
                folder.mkdir(exist_ok=True)
            stop = StopRequest()
            with stop_signals(stop.handle):
                return _run_until_it_fits(
                    run_dir, config, stop, lambda config: _Launch(run_dir, config, stop, grace_s, watch).run(start)
                )
        except OSError as error:
            if completed := run_dir.completed():
                return Outcome(completed=completed)
            text = "".join(traceback.format_exception(error))
            return failed(run_dir, ErrorReport.of(error, cause=os_error_cause(error), rank=None, traceback=text))


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


def _run_until_it_fits(
    run_dir: RunDir, config: RunConfig, stop: StopRequest, run: Callable[[RunConfig], Outcome]
) -> Outcome:
    """Run set after set of ranks, as long as a device's memory runs out and smaller parts of a batch can be tried."""
    while True:
        _forget_end(run_dir, config.local_world_size)
        since = last_seq(run_dir)
        outcome = run(config)
        if outcome.error is None or stop.signals:
            return outcome
        smaller = smaller_parts(run_dir, config, outcome.error, since=since)
        if smaller is None:
            told = with_way_out(outcome.error, config, is_relaunched=config.nnodes == 1)
            return outcome if told is outcome.error else failed(run_dir, told, config=config)
        commit(run_dir, smaller, outcome.error)
        config = smaller


class _Launch:
    """One set of ranks, from their start to their end."""

    def __init__(
        self, run_dir: RunDir, config: RunConfig, stop: StopRequest, grace_s: float, watch: Callable[[], None]
    ) -> None:
        self.run_dir, self.config, self.stop, self.grace_s, self.watch = run_dir, config, stop, grace_s, watch
        self.ranks: list[RankProcess] = []
        """Those of this node, by local rank; so is everything below."""
        self.ended: dict[int, RankEnd] = {}
        """The ranks that have ended by themselves."""
        self.oom_kills = OomKills()
        self.hang_watch = HangWatch(run_dir, config)
        self.hang: ErrorReport | None = None
        """Of the rank for which the others are ended, should one hang."""

    def run(self, start: StartMethod) -> Outcome:
        try:
            self._start_all(start)
            self._wait()
        finally:
            self._end_all()
        self.watch()
        stopped_by = self.stop.signals[0] if self.stop.signals else None
        return conclude(self.run_dir, self.config, self.ended, stopped_by=stopped_by, hang=self.hang)

    def _start_all(self, start: StartMethod) -> None:
        config, count = self.config, self.config.local_world_size
        defaults = machine_defaults(os.environ, local_world_size=count, on_loopback=is_on_loopback(config))
        defaults |= surroundings(self.run_dir, config, os.environ | defaults)
        with open_rendezvous(config) as rendezvous:
            for local_rank in range(count):
                rank = RankEnvironment(
                    rank=config.node_rank * count + local_rank,
                    local_rank=local_rank,
                    world_size=config.world_size,
                    local_world_size=count,
                    node_rank=config.node_rank,
                    master_addr=rendezvous.address,
                    master_port=rendezvous.port,
                )
                environment = os.environ | defaults | rank.variables()
                environment[RUN_DIR_VARIABLE] = run_dir_tag(self.run_dir)
                environment[PARENT_PID_VARIABLE] = str(os.getpid())
                inherited = [rendezvous.listener] if rank.rank == 0 and rendezvous.listener is not None else []
                environment[MASTER_FD_VARIABLE] = ",".join(map(str, inherited))
                with _environment_that_fits(environment, field="options.env" if self._is_script() else "environment"):
                    rank_process = start(environment=environment, log=self.run_dir.log(local_rank), inherited=inherited)
                self.ranks.append(rank_process)

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
                if self._is_script():
                    with suppress(OSError):  # on a full disk: a program that saves and leaves then counts as complete
                        self.run_dir.stopping.touch()
                self._terminate()
            if self._failed():
                # A rank that is gone takes part in no common step, whether or not we asked for one.
                deadline = min(deadline, now + OTHER_REPORTS_S)
            elif 0 in self.ended or self._is_through(0):
                deadline = min(deadline, now + _TEARDOWN_S)
            if now >= deadline or (deadline == float("inf") and self._hangs()):
                return
            self.watch()
            time.sleep(POLL_S)

    def _hangs(self) -> bool:
        """Whether some rank hangs; then it is told at once, since there may be no end to it."""
        if not (still := self.hang_watch.look(self.ended)):
            return False
        pids = {rank: process.pid for rank, process in enumerate(self.ranks) if rank not in self.ended}
        report, is_elsewhere = report_hang(self.run_dir, self.config, still, pids)
        if is_elsewhere and self.hang_watch.leave_to_others():
            return False
        self.hang = report
        if self.run_dir.completed() is None:
            failed(self.run_dir, report, config=self.config)
        return True

    def _collect(self) -> None:
        self.oom_kills.look()
        for rank, process in enumerate(self.ranks):
            if rank not in self.ended and (status := process.poll()) is not None:
                reached = self.run_dir.read_progress(rank)
                self.ended[rank] = RankEnd(
                    status,
                    seen=datetime.now(UTC),
                    oom_kill=self.oom_kills.just_now() if status != 0 else None,
                    phase=reached.phase if reached else None,
                )

    def _is_through(self, local_rank: int) -> bool:
        """Whether a rank has nothing left to do but to end: its teardown may wait for ever for what others hold."""
        reached = self.run_dir.read_progress(local_rank)
        return reached is not None and reached.phase == "finished"

    def _failed(self) -> bool:
        if self._is_script() and self.stop.signals:
            return False  # each rank of a program answers a signal in its own way, and one may save when others died
        return any(end.is_failure for end in self.ended.values())

    def _is_script(self) -> bool:
        return self.config.train.recipe == SCRIPT

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
                time.sleep(POLL_S)
        for process in self.ranks:
            process.kill()


@contextmanager
def _environment_that_fits(environment: Mapping[str, str], *, field: str) -> Iterator[None]:
    """Raise ConfigError naming the field where the system starts no process with so large an environment."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.E2BIG:
            raise
        sizes = {name: len(name) + len(os.fsencode(value)) for name, value in environment.items()}
        largest = max(sizes, key=lambda name: sizes[name])
        raise ConfigError(
            f"{field}: the system starts no process with an environment of {sum(sizes.values())} bytes, of which "
            f"{largest} has {sizes[largest]}; hand over what is large in a file"
        ) from error


def run_dir_tag(run_dir: RunDir) -> str:
    """Return RANKZERO_RUN_DIR as each process of the run carries it: in the spelling that its starter looks for."""
    given = os.environ.get(RUN_DIR_VARIABLE, "")
    if given and os.path.realpath(given) == os.path.realpath(run_dir.path):
        return given
    return str(run_dir.path.absolute())


@contextmanager
def _exclusive(run_dir: RunDir) -> Iterator[None]:
    """Hold the run directory: two launchers writing one journal would spoil it. The kernel lets go when we end."""
    try:
        folder = os.open(run_dir.path, os.O_RDONLY)  # not a file in it: config.json may be replaced meanwhile
    except OSError as error:
        raise ConfigError(f"{run_dir.config}: not readable: {error}") from error
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise RunDirBusyError(f"{run_dir.path}: a run is already going on in this run directory") from error
        yield
    finally:
        os.close(folder)


def _forget_end(run_dir: RunDir, ranks: int) -> None:
    """Remove what an earlier, interrupted run in this directory said about its end."""
    ends = (run_dir.error, run_dir.stopping)
    for path in (*ends, *map(run_dir.rank_error, range(ranks)), *map(run_dir.progress, range(ranks))):
        with suppress(FileNotFoundError):
            path.unlink()
