"""Control groups: the kernel's own list of the processes of a run, which none of them leaves by any way of starting.

Where this host lets its worker make groups (cgroup v2, as root or delegated to its user), each placement has one: the
trainer is started in it, whatever it starts is in it, and the run is over when it is empty. Elsewhere processes are
found by their marks alone (`worker.processes`). Source: Linux kernel, Documentation/admin-guide/cgroup-v2.rst.
"""

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import structlog

RECORD = "cgroup"
"""File of the run directory with the path of the run's group: a later worker may be in another part of the tree."""
PREFIX = "rankzero."
OF_A_JOB = f"{PREFIX}job-"
"""What the group of every run begins with, unlike a unit of systemd's that is called `rankzero.service`."""

_ENTER = 'echo $$ >"$0/cgroup.procs"; exec "$@"'
"""Shell that moves itself, and then becomes the program: in the group from the program's first instant on. Where it is
not let in, the program runs all the same, as on a host with no groups."""

log = structlog.get_logger()


@dataclass(frozen=True)
class Group:
    """The control group of one run."""

    path: Path

    def entering(self, command: Sequence[str]) -> list[str]:
        """Return the command that runs `command` in this group, under the pid of the process that is started."""
        return ["/bin/sh", "-c", _ENTER, str(self.path), *command]

    def pids(self) -> set[int]:
        """The live processes in it, and in groups that they made in it."""
        return {pid for each in self._tree() for pid in _pids(each)}

    def kill(self) -> None:
        """Send SIGKILL to all of them, those included that are just being started."""
        try:
            (self.path / "cgroup.kill").write_text("1")
        except OSError:  # a kernel before 5.14, or a group that is gone
            for pid in self.pids():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def remove(self) -> None:
        """Remove it, unless something is in it."""
        for each in self._tree():
            with suppress(OSError):
                each.rmdir()

    def _tree(self) -> Iterator[Path]:
        """It and the groups in it, the innermost first."""
        for folder, _, _ in os.walk(self.path, topdown=False):
            yield Path(folder)


def make(run_dir: Path) -> Group | None:
    """Make the group of a run; None where this host does not let us. Raises OSError where it cannot be recorded."""
    base = _parent_group()
    if base is None:
        return None
    group = Group(base / _name(run_dir))
    try:
        group.path.mkdir(exist_ok=True)
        # Whoever moves a process needs a say over the group that both ends have in common.
        if not os.access(base / "cgroup.procs", os.W_OK):
            group.remove()
            return None
    except OSError as error:
        log.info("no_cgroup", parent=str(base), error=str(error))
        return None
    try:
        (run_dir / RECORD).write_text(f"{group.path}\n")
    except OSError:
        group.remove()  # nobody would ever find it
        raise
    return group


def of_run(run_dir: Path) -> Group | None:
    """Return the group that was made for a run, or None where there was none, or it is removed."""
    try:
        path = Path((run_dir / RECORD).read_text().strip())
    except (OSError, UnicodeDecodeError):
        return None
    # The run could write this file: it must not name a group of anybody else.
    is_its_own = path.name == _name(run_dir) and (path / "cgroup.procs").is_file()
    return Group(path) if is_its_own else None


def run_dirs(run_root: Path) -> list[str]:
    """Return the run directories, under a run root, of the groups here that have processes."""
    base = _parent_group()
    if base is None:
        return []
    in_use = (path.name.removeprefix(PREFIX) for path in base.glob(f"{OF_A_JOB}*.*") if Group(path).pids())
    return [str(run_root.joinpath(*name.split("."))) for name in in_use]


def parent_of_runs(own: Path) -> Path:
    """Return the group in which a process makes those of runs: its own, unless that is the one of a run.

    A worker that was started by a run, such as a test's, makes them next to that rather than in it.
    """
    return own.parent if own.name.startswith(OF_A_JOB) else own


def _name(run_dir: Path) -> str:
    return f"{PREFIX}{run_dir.parent.name}.{run_dir.name}"


def _parent_group() -> Path | None:
    """The group that those of runs are in, in the tree of version 2, or None where there is no such tree."""
    try:
        mounts = [line.split(" - ") for line in Path("/proc/self/mountinfo").read_text().splitlines()]
        own = [line.split("::", 1)[1] for line in Path("/proc/self/cgroup").read_text().splitlines() if "::" in line]
    except OSError:
        return None
    points = [before.split()[4] for before, after in mounts if after.split()[0] == "cgroup2"]
    if not points or not own:
        return None
    return parent_of_runs(Path(points[0]) / own[0].lstrip("/"))


def _pids(group: Path) -> set[int]:
    try:
        listed = {int(line) for line in (group / "cgroup.procs").read_text().split()}
    except OSError:
        return set()
    return listed - {0}  # which stands for one that this PID namespace cannot see, and to kill(2) for our own group
