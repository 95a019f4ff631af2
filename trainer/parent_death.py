"""Death with the parent: a process never outlives the process that started it.

Import this before anything heavy: a parent killed while its child still imports torch would otherwise leave an orphan.
A program that cannot import it is started through it: `python parent_death.py PARENT_PID COMMAND…`. That stands
between parent and command because the kernel's signal has to be armed in the child, before the command runs, and
without running Python code between fork and exec in a parent that may have threads.

Standard library only, and nothing of ours.
"""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from typing import NoReturn

PARENT_PID_VARIABLE = "RANKZERO_PARENT_PID"
"""Environment variable with the pid whose death must end this process, set for each start by its starter."""
_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_POLL_S = 0.5


def die_with_parent(parent_pid: int | None = None) -> None:
    """End this process with SIGKILL as soon as its parent has ended, also if it already has.

    `parent_pid` defaults to what the starter left in RANKZERO_PARENT_PID; where there is neither, somebody started
    this process by hand and nothing happens. The variable is removed: a grandchild has another parent.

    On Linux the kernel sends the signal when the *thread* that started this process ends: start from one that lives on.
    """
    named = os.environ.pop(PARENT_PID_VARIABLE, None)
    parent_pid = parent_pid if parent_pid is not None else _pid(named)
    if parent_pid is None:
        return
    if sys.platform == "linux":
        if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    else:
        threading.Thread(target=_poll, args=(parent_pid,), name="parent-death", daemon=True).start()
    # Only now: had the parent died before the signal was armed, none would ever come.
    if os.getppid() != parent_pid:
        _end()


def _pid(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None


def _poll(parent_pid: int) -> None:
    while os.getppid() == parent_pid:
        time.sleep(_POLL_S)
    _end()


def _end() -> NoReturn:
    os._exit(128 + signal.SIGKILL)


def _become(parent_pid: int, command: list[str]) -> NoReturn:
    """Become `command`, which ends when `parent_pid` does."""
    if os.uname().sysname == "Linux":
        die_with_parent(parent_pid)  # the armed signal outlives the exec
        os.execvp(command[0], command)  # noqa: S606  # becoming the command, with no shell, is the purpose
    # Where the kernel sends no such signal, stay beside the command and look for the parent.
    child = subprocess.Popen(command, close_fds=False)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _frame: child.send_signal(received))
    while child.poll() is None:
        if os.getppid() != parent_pid:
            child.kill()
        time.sleep(_POLL_S)
    sys.exit(child.returncode if child.returncode >= 0 else 128 - child.returncode)


if __name__ == "__main__":
    _become(int(sys.argv[1]), sys.argv[2:])
