"""Which processes belong to a run, and the proof that none is left.

A process belongs to a run by an environment variable that every descendant inherits, so that one which left the
process group, or whose parent died, is found as well. One that wrote over its environment (a process title does that)
is found as a member of a session that others of the run are in, or, while its supervisor lives, as its descendant.
Where the kernel lets us, the run has a control group, which none of its processes can leave (`worker.cgroups`).
"""

import ctypes
import os
import platform
import signal
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import structlog

from trainer.process_identity import is_alive
from trainer.run_dir import RUN_DIR_VARIABLE
from worker import cgroups

SUPERVISOR_VARIABLE = "RANKZERO_SUPERVISOR_OF"
"""Environment variable with the run directory of the placement that a supervisor was started for."""

_LOOK_S = 0.02
_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h

LINUX = platform.system() == "Linux"

log = structlog.get_logger()


@dataclass(frozen=True)
class MarkedProcess:
    """A live process that carries the mark of a run, other than this one."""

    pid: int
    run_dir: str | None
    """The run that it is a part of."""
    supervisor_of: str | None
    """The run that it was started to supervise."""


def marked_processes() -> list[MarkedProcess]:
    """Look through all processes of this machine once."""
    found = []
    for pid in psutil.pids():
        environment = _environment(pid)
        run_dir, supervisor_of = environment.get(RUN_DIR_VARIABLE), environment.get(SUPERVISOR_VARIABLE)
        if (run_dir or supervisor_of) and pid != os.getpid():
            found.append(MarkedProcess(pid, run_dir, supervisor_of))
    return found


def signal_process(whom: str, number: signal.Signals) -> None:
    """Send a signal to the process of this identity, if it still runs."""
    if is_alive(whom):
        with suppress(ProcessLookupError):
            os.kill(int(whom.partition(":")[0]), number)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent dies: none can then leave this process's family."""
    if sys.platform == "linux" and ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER) failed")


def end_run(run_dir: str, *, with_descendants: bool = False, timeout_s: float = 5) -> bool:
    """Kill every process of a run and return whether none is left, which frees its devices to others.

    `with_descendants` counts all of this process's descendants in, for the run's own supervisor. False after
    `timeout_s` means that a process cannot be killed (it waits in the kernel): nothing is proven.
    """
    deadline = time.monotonic() + timeout_s
    sessions: set[int] = set()
    # Two looks in a row must find none: a process that is just becoming another program shows no environment.
    looks_without = 0
    group = cgroups.of_run(Path(run_dir))
    while looks_without < 2:
        marked = {process.pid for process in marked_processes() if process.run_dir == run_dir}
        if group is not None:
            marked |= group.pids() - {os.getpid()}
            group.kill()
        sessions |= {session for session in map(_session, marked) if session is not None} - {os.getsid(0)}
        pids = marked | _members(sessions) | (_descendants() if with_descendants else set())
        looks_without = 0 if pids else looks_without + 1
        kill_all(pids)
        if pids and time.monotonic() > deadline:
            log.error("processes_will_not_die", run_dir=run_dir, pids=sorted(pids))
            return False
        time.sleep(_LOOK_S)
    if group is not None:
        group.remove()
    return True


def kill_all(pids: Iterable[int]) -> None:
    """Send SIGKILL to those that are still there."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


def _members(sessions: set[int]) -> set[int]:
    """The live processes of these sessions."""
    if not sessions:
        return set()
    return {pid for pid in psutil.pids() if _session(pid) in sessions and not _is_zombie(pid)}


def _descendants() -> set[int]:
    """The live descendants of this process; those that are dead are collected."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass
    return {child.pid for child in psutil.Process().children(recursive=True) if not _is_zombie(child.pid)}


def _is_zombie(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        return True


def _environment(pid: int) -> dict[str, str]:
    """The environment a process was started with; empty where it is gone, a zombie or somebody else's."""
    try:
        if LINUX:
            raw = Path(f"/proc/{pid}/environ").read_bytes()
            if b"RANKZERO_" not in raw:
                return {}
            pairs = os.fsdecode(raw).split("\0")
            return dict(pair.split("=", 1) for pair in pairs if "=" in pair)
        return psutil.Process(pid).environ()
    except (OSError, psutil.Error):
        return {}
