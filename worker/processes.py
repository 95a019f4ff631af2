"""Which processes belong to a run, and the proof that none is left.

A process belongs to a run by an environment variable that every descendant inherits, so that one which left the
process group, or whose parent died, is found as well.
"""

import os
import platform
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import psutil
import structlog

from trainer.run_dir import RUN_DIR_VARIABLE

SUPERVISOR_VARIABLE = "RANKZERO_SUPERVISOR_OF"
"""Environment variable with the run directory of the placement that a supervisor was started for."""

LINUX = platform.system() == "Linux"

log = structlog.get_logger()


def identity(pid: int) -> str:
    """Return `pid:start time`, which no later process shares: a pid alone comes back. Raises ProcessLookupError."""
    if LINUX:
        # Ticks since boot, with the boot's own id: unlike a wall time it stays the same when the clock is set.
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except FileNotFoundError as error:
            raise ProcessLookupError(pid) from error
        if fields[0] in "ZX":
            raise ProcessLookupError(pid)
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{pid}:{fields[19]}@{boot}"
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            raise ProcessLookupError(pid)
        return f"{pid}:{process.create_time()!r}"
    except psutil.NoSuchProcess as error:
        raise ProcessLookupError(pid) from error


def is_alive(whom: str) -> bool:
    """Whether the very process of this identity still runs; a zombie does not."""
    pid = int(whom.partition(":")[0])
    try:
        return identity(pid) == whom
    except ProcessLookupError:
        return False


def signal_process(whom: str, number: signal.Signals) -> None:
    """Send a signal to the process of this identity, if it still runs."""
    if is_alive(whom):
        with suppress(ProcessLookupError):
            os.kill(int(whom.partition(":")[0]), number)


def run_dirs_in_use(variable: str = RUN_DIR_VARIABLE) -> dict[str, list[int]]:
    """Return the live processes that carry `variable`, by its value; never this process."""
    found: dict[str, list[int]] = {}
    for pid in psutil.pids():
        value = _environment(pid).get(variable)
        if value and pid != os.getpid():
            found.setdefault(value, []).append(pid)
    return found


def end_run(run_dir: str, *, variable: str = RUN_DIR_VARIABLE, timeout_s: float = 5) -> bool:
    """Kill every process of a run and return whether none is left, which frees its devices to others.

    False after `timeout_s` means that a process cannot be killed (it waits in the kernel): nothing is proven.
    """
    deadline = time.monotonic() + timeout_s
    while pids := run_dirs_in_use(variable).get(run_dir, []):
        _kill(pids)
        if time.monotonic() > deadline:
            log.error("processes_will_not_die", run_dir=run_dir, pids=pids)
            return False
        time.sleep(0.02)
    return True


def _kill(pids: Iterable[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _environment(pid: int) -> dict[str, str]:
    """The environment a process was started with; empty where it is gone, a zombie or somebody else's."""
    try:
        if LINUX:
            pairs = os.fsdecode(Path(f"/proc/{pid}/environ").read_bytes()).split("\0")
            return dict(pair.split("=", 1) for pair in pairs if "=" in pair)
        return psutil.Process(pid).environ()
    except (OSError, psutil.Error):
        return {}
