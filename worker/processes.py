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

from trainer.process_identity import is_alive
from trainer.run_dir import RUN_DIR_VARIABLE

SUPERVISOR_VARIABLE = "RANKZERO_SUPERVISOR_OF"
"""Environment variable with the run directory of the placement that a supervisor was started for."""

_LOOK_S = 0.02

LINUX = platform.system() == "Linux"

log = structlog.get_logger()


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
    # Two looks in a row must find none: a process that is just becoming another program shows no environment.
    looks_without = 0
    while looks_without < 2:
        pids = run_dirs_in_use(variable).get(run_dir, [])
        looks_without = 0 if pids else looks_without + 1
        _kill(pids)
        if pids and time.monotonic() > deadline:
            log.error("processes_will_not_die", run_dir=run_dir, pids=pids)
            return False
        time.sleep(_LOOK_S)
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
