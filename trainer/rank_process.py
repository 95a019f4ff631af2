"""How one rank is started: a replaceable start method, by default a fresh interpreter."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol


class RankProcess(Protocol):
    """A started rank, and whatever it started itself."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None:
        """Return None while the rank runs, then its exit status, or the negative number of the signal that ended it."""

    def terminate(self) -> None:
        """Ask the rank to stop at the next common step."""

    def kill(self) -> None:
        """End the rank and all that it started, now, and collect it."""


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
        return self._process.poll()

    def terminate(self) -> None:
        self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        # The group, not the process: loader processes and what a recipe started are in it, and outlive their leader.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


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
