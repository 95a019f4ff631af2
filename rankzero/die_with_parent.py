"""Runs a command that ends with its parent: `python die_with_parent.py PARENT_PID COMMAND…`, standard library only.

It stands between the parent and the command because the kernel's signal has to be armed in the child, before the
command runs, and without running Python code between fork and exec in a parent that may have threads.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time

PR_SET_PDEATHSIG = 1  # linux/prctl.h
POLL_S = 0.5


def main(parent_pid: int, command: list[str]) -> None:
    """Become `command`, to be killed when the process `parent_pid` ends, also if it has already."""
    if sys.platform != "linux":
        sys.exit(_watch(parent_pid, command))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    # Only now: had the parent died before the signal was armed, none would ever come.
    if os.getppid() != parent_pid:
        sys.exit(f"the parent {parent_pid} has ended")
    os.execvp(command[0], command)  # noqa: S606  # becoming the command, with no shell, is the purpose


def _watch(parent_pid: int, command: list[str]) -> int:
    """Where the kernel sends no such signal: stay beside the command and look for the parent."""
    child = subprocess.Popen(command, close_fds=False)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _frame: child.send_signal(received))
    while child.poll() is None:
        if os.getppid() != parent_pid:
            child.kill()
        time.sleep(POLL_S)
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
