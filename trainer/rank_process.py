"""How one rank is started: a replaceable start method, by default a fresh interpreter."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

_KILLED_WITHIN_S = 30.0
"""How long a rank may take to die: much pinned memory takes a while, and a driver or a network share that does not
answer keeps it for good. What is left then is for others to see: a launcher that waited on would tell nobody."""
_REAPED_WITHIN_S = 5.0
"""How long what a dead rank left may take to vanish; a container without an init process keeps zombies for good."""


class RankProcess(Protocol):
    """A started rank, and whatever it started itself."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None:
        """Return None while the rank runs, then its exit status, or the negative number of the signal that ended it."""

    def terminate(self) -> None:
        """Ask the rank to stop at the next common step."""

    def kill(self) -> None:
        """End the rank and all that it started, now, and collect it; what the kernel does not let go of stays."""


class StartMethod(Protocol):
    """Starts one rank. It must arrange for the rank to die with this process (see trainer.parent_death)."""

    def __call__(self, *, environment: Mapping[str, str], log: Path, inherited: Sequence[int]) -> RankProcess:
        """Start a rank whose output goes to `log`; `inherited` are file descriptors it keeps under their numbers."""


class _Interpreter:
    """A rank in an interpreter, and a process group, of its own: a Ctrl-C at the terminal reaches the launcher only."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    def poll(self) -> int | None:
        if self._process.returncode is not None or not hasattr(os, "waitid"):
            return self._process.poll()
        # Looked at, not collected: until `kill` has ended its group, nobody else may get this process group's number.
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        ended = os.waitid(os.P_PID, self._process.pid, flags)
        if ended is None:
            return None
        return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status

    def terminate(self) -> None:
        self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        # The group, not the process: loader processes and what a recipe started are in it, and outlive their leader.
        with suppress(ProcessLookupError, PermissionError):  # macOS says so of a group that only holds a zombie
            os.killpg(self._process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_KILLED_WITHIN_S)
        deadline = time.monotonic() + _REAPED_WITHIN_S
        while _has_members(self._process.pid) and time.monotonic() < deadline:
            time.sleep(0.01)


def _has_members(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def fresh_interpreter(*, environment: Mapping[str, str], log: Path, inherited: Sequence[int]) -> RankProcess:
    """Start `python -m trainer.rank`.

    Not multiprocessing: a fork would carry CUDA and threads along, a spawn would import the caller's main module, and
    both arm their parent-death signal only after the imports are done.
    """
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "trainer.rank"],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=tuple(inherited),
            process_group=0,
        )
    return _Interpreter(process)
