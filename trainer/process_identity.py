"""Process identity: `pid:start time`, which no later process shares, since a pid alone comes back.

Standard library only: whoever keeps an eye on a process of another program can afford it.
"""

import subprocess
import sys
from pathlib import Path


def identity(pid: int) -> str:
    """Return the identity of a running process. Raises ProcessLookupError where none runs; a zombie does not."""
    return _from_proc(pid) if sys.platform == "linux" else _from_ps(pid)


def is_alive(whom: str) -> bool:
    """Whether the very process of this identity still runs."""
    pid = int(whom.partition(":")[0])
    try:
        return identity(pid) == whom
    except ProcessLookupError:
        return False


def is_local(whom: str) -> bool:
    """Whether the process of this identity is, or was, one that this process can see: of this boot and PID namespace.

    Nothing can be said of any other: containers number their processes each on their own.
    """
    return whom.partition("@")[2] == (_boot_and_namespace() if sys.platform == "linux" else "")


def _boot_and_namespace() -> str:
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    namespace = Path("/proc/self/ns/pid").readlink().name.removeprefix("pid:").strip("[]")
    return f"{boot_id}/{namespace}"


def _from_proc(pid: int) -> str:
    """Ticks since boot, and which boot: unlike a wall time it stays the same when the clock is set."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError) as error:
        raise ProcessLookupError(pid) from error
    state, start_ticks = fields[0], fields[19]
    if state in "ZX":
        raise ProcessLookupError(pid)
    return f"{pid}:{start_ticks}@{_boot_and_namespace()}"


def _from_ps(pid: int) -> str:
    answer = subprocess.run(["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    state, _, started = answer.stdout.strip().partition(" ")
    if not state or state.startswith("Z"):
        raise ProcessLookupError(pid)
    return f"{pid}:{started.strip()}"
