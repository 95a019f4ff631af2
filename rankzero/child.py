"""One child process of the embedded service: started, restarted and ended, and never outliving its parent."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from rankzero.errors import EmbeddedError
from trainer import parent_death

MAX_RESTARTS = 5
RESTART_WINDOW_S = 60.0
"""A child that dies more than MAX_RESTARTS times in this many seconds is beyond restarting."""


class Child:
    """A process that is to run as long as this one does; it writes to a log file of its own."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        log: Path,
        folder: Path,
        environment: Mapping[str, str],
        pass_fds: Sequence[int] = (),
    ) -> None:
        self.name = name
        self.log = log
        self._command = list(command)
        self._folder = folder
        self._environment = dict(environment)
        self._pass_fds = tuple(pass_fds)
        self._process: subprocess.Popen[bytes] | None = None
        self._restarts: list[float] = []

    def start(self) -> None:
        """Start it. Call this from the main thread: on Linux the child ends with the *thread* that started it."""
        wrapper = [sys.executable, "-I", "-S", str(Path(parent_death.__file__)), str(os.getpid())]
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                [*wrapper, *self._command],
                cwd=self._folder,
                env=self._environment,
                pass_fds=self._pass_fds,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # A Ctrl-C at the terminal is the parent's to handle: it ends its children in order.
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{self.name} was never started"
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def restart(self) -> str:
        """Start it again after it has died, and return how it died.

        Raises EmbeddedError, with the end of its log, where it dies too often.
        """
        assert self._process is not None
        code = self._process.returncode
        ending = f"signal {-code}" if code < 0 else f"exit status {code}"
        now = time.monotonic()
        self._restarts = [at for at in self._restarts if now - at < RESTART_WINDOW_S] + [now]
        if len(self._restarts) > MAX_RESTARTS:
            raise EmbeddedError(f"the {self.name} keeps dying ({ending}); the end of {self.log}:\n{self.log_end()}")
        self.start()
        return ending

    def terminate(self) -> None:
        """Ask it to end."""
        if self._process is not None and self.is_running:
            self._process.terminate()

    def wait(self, timeout_s: float) -> bool:
        """Wait for its end; whether it came."""
        with suppress(subprocess.TimeoutExpired):
            if self._process is not None:
                self._process.wait(timeout=max(0.0, timeout_s))
            return True
        return False

    def kill(self) -> None:
        """End it at once."""
        if self._process is not None and self.is_running:
            self._process.kill()
            self._process.wait()

    def log_end(self) -> str:
        """Return the end of its log."""
        try:
            with self.log.open("rb") as file:
                file.seek(max(0, self.log.stat().st_size - 4000))
                return file.read().decode(errors="replace")
        except FileNotFoundError:
            return ""
