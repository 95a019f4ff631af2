"""A host that restarts inside its lease: all that ran there is dead at once, and its worker is back under another boot.

The boot's id is a file that is mounted over the kernel's own, in a mount namespace of the host's worker and of all that
it starts; the namespace is gone with the last of them.
"""

import subprocess
import uuid
from pathlib import Path

import pytest

from jobs.store import hosts
from tests.faults.matrix.fault import Fault
from tests.faults.matrix.lane import TICK_S
from tests.faults.matrix.trial import Trial
from worker.processes import kill_all, marked_processes

HOST = "restarted"
KERNELS = "/proc/sys/kernel/random/boot_id"


def restart_host(trial: Trial) -> None:
    """Nobody has proven its ranks dead, so the job waits for what is left of the lease, and goes on there.

    docs/architecture.md says why another boot is no proof. Recovery counts from the death of the host.
    """
    boot = trial.lane.folder / "boot_id"
    if not boot.exists():  # never under a host that stands
        boot.write_text(f"{uuid.uuid4()}\n")
    trial.lane.worker(HOST, inside=_under(boot), tick_s=TICK_S)
    job_id = trial.submit({"count": 2, "host": HOST})
    trial.service.wait_for_supervisor(job_id)
    trial.pause(trial.remaining_s)
    worker = trial.lane.worker(HOST)
    worker.kill()
    _kill_all_below(trial.lane.folder / HOST)
    worker.wait()
    trial.struck()
    boot.write_text(f"{uuid.uuid4()}\n")
    trial.lane.worker(HOST)
    with trial.service.database.session_scope(read_only=True) as session:
        holder = hosts.worker_of(session, HOST)
    assert holder is not None
    assert f"@{boot.read_text().strip()}/" in holder, f"{holder} is of another boot than was mounted"


def _under(boot: Path) -> tuple[str, ...]:
    """The command that starts another one where the kernel tells of this boot."""
    inside = ("unshare", "--mount", "sh", "-c", f'mount --bind "{boot}" {KERNELS} && exec "$@"', "sh")
    tried = subprocess.run([*inside, "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"no boot of its own can be made for a host here: {tried.stderr.strip()}")
    return inside


def _kill_all_below(run_root: Path) -> None:
    """Kill the supervisors, launchers and ranks of a host, none of which has the time to do anything about it."""

    def pids() -> set[int]:
        root = str(run_root)
        return {each.pid for each in marked_processes() if (each.run_dir or each.supervisor_of or "").startswith(root)}

    while found := pids():
        kill_all(found)


FAULTS = (Fault("the host restarts inside its lease", restart_host, attempts=2, outlasts_lease=True),)
