"""Ports of 127.0.0.1 that a test process holds for itself, also while the server behind one is down."""

import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path
from typing import IO

# Below every system's range of ephemeral ports: no outgoing connection takes one while its server restarts.
FIRST_PORT, LAST_PORT = 20_000, 20_999


class PortClaim:
    """A free port, held against every other test process of this user until `release`.

    Binding to port 0 and closing loses races between test processes, and the port of a stopped server would be anyone's
    to take; so the claim is a locked file, which the kernel unlocks when this process ends in any way.
    """

    def __init__(self) -> None:
        folder = Path(tempfile.gettempdir()) / f"rankzero-test-ports-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        candidates = random.sample(range(FIRST_PORT, LAST_PORT + 1), LAST_PORT - FIRST_PORT + 1)
        for port in candidates:
            lock = (folder / str(port)).open("w")
            if _locked(lock) and _can_bind(port):
                self.port, self._lock = port, lock
                return
            lock.close()
        raise RuntimeError(f"no free port on 127.0.0.1 between {FIRST_PORT} and {LAST_PORT}")

    def release(self) -> None:
        """Give the port back. The lock file stays: removing it would let two processes lock two files of one name."""
        self._lock.close()


def _locked(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _can_bind(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
