"""The end of a run, with real processes: whatever they did to hide, none is left when their devices come free."""

import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.waiting import wait_until
from trainer.process_identity import identity, is_alive
from trainer.run_dir import RUN_DIR_VARIABLE
from worker import cgroups
from worker.processes import SUPERVISOR_VARIABLE, end_run, marked_processes

SUPERVISOR = """
import os, sys
from subprocess import DEVNULL, run
from pathlib import Path
from worker.processes import adopt_orphans, end_run

run_dir, rank = sys.argv[1:]
adopt_orphans()
environment = os.environ | {"RANKZERO_RUN_DIR": run_dir}
run([sys.executable, "-c", rank, run_dir], env=environment, stdout=DEVNULL, stderr=DEVNULL, check=True)
print(end_run(run_dir, with_descendants=True))
"""
"""What `worker.supervisor` does with its run at the end; the run is one process, `rank`."""

KILLED_SUPERVISOR = """
import os, signal, sys
from subprocess import DEVNULL, Popen
from pathlib import Path
from worker import cgroups

run_dir, rank = sys.argv[1:]
group = cgroups.make(Path(run_dir))
if group is None:
    sys.exit("this host lets nobody make cgroups")
environment = os.environ | {"RANKZERO_RUN_DIR": run_dir}
command = group.entering([sys.executable, "-c", rank, run_dir])
Popen(command, env=environment, stdout=DEVNULL, stderr=DEVNULL, start_new_session=True).wait()
os.kill(os.getpid(), signal.SIGKILL)
"""
"""A supervisor that starts its run in a control group, and is killed when the run's first process has ended."""

RANK = """
import ctypes, os, sys, time
from pathlib import Path

if os.fork():
    while not Path(sys.argv[1], "pid").exists():
        time.sleep(0.01)
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
{hide}
{sleep}
"""
"""A rank whose grandchild leaves its session, hides, and outlives it."""

TELL_AND_SLEEP = """
import os, sys, time
from pathlib import Path
new = Path(sys.argv[1], "new")
new.write_text(str(os.getpid()))
new.rename(Path(sys.argv[1], "pid"))
time.sleep(600)
"""
SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]
WITH_NO_ENVIRONMENT = f"os.execve(sys.executable, [sys.executable, '-c', {TELL_AND_SLEEP!r}, sys.argv[1]], {{}})"
WRITES_OVER_ITS_ENVIRONMENT = """
fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
start, end = int(fields[47]), int(fields[48])  # env_start and env_end, see proc(5)
ctypes.memset(start, 0, end - start)
"""
KEEPS_ITS_MARK = ""


@pytest.fixture
def run_dir(tmp_path: Path) -> Iterator[Path]:
    """A run directory; the process whose pid lies in it is ended after the test."""
    folder = tmp_path / "job-1" / f"attempt-1-{secrets.token_hex(4)}"
    folder.mkdir(parents=True)
    yield folder
    with suppress(FileNotFoundError, ProcessLookupError):
        os.kill(int((folder / "pid").read_text()), signal.SIGKILL)


def escaped(run_dir: Path) -> int:
    """The pid of the grandchild that left."""
    return int((run_dir / "pid").read_text())


def has_ended(pid: int) -> bool:
    try:
        identity(pid)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel makes nobody the parent of orphans elsewhere")
@pytest.mark.parametrize(
    "hide",
    [KEEPS_ITS_MARK, WITH_NO_ENVIRONMENT, WRITES_OVER_ITS_ENVIRONMENT],
    ids=["keeps its mark", "has no environment", "writes over its environment"],
)
def test_an_orphan_that_left_its_session_is_dead_before_its_supervisor_says_so(run_dir: Path, hide: str) -> None:
    supervisor = [sys.executable, "-c", SUPERVISOR, str(run_dir), RANK.format(hide=hide, sleep=TELL_AND_SLEEP)]

    done = subprocess.run(supervisor, capture_output=True, text=True, check=False, timeout=60)

    assert done.stdout == "True\n", done.stderr
    assert has_ended(escaped(run_dir))


def test_one_that_hides_by_every_means_under_a_supervisor_that_was_killed_is_found_by_its_control_group(
    run_dir: Path,
) -> None:
    rank = RANK.format(hide=WRITES_OVER_ITS_ENVIRONMENT, sleep=TELL_AND_SLEEP)
    done = subprocess.run(
        [sys.executable, "-c", KILLED_SUPERVISOR, str(run_dir), rank],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if done.returncode == 1 and "lets nobody" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == -signal.SIGKILL, done.stderr
    pid = escaped(run_dir)
    assert pid not in {process.pid for process in marked_processes()}
    group = cgroups.of_run(run_dir)
    assert group is not None
    run_root = run_dir.parent.parent
    assert str(run_dir) in cgroups.run_dirs(run_root)

    assert end_run(str(run_dir))

    wait_until(lambda: has_ended(pid), timeout_s=5, what="the process that hid to end")
    assert str(run_dir) not in cgroups.run_dirs(run_root)
    assert not group.path.exists()


def test_a_run_is_ended_by_who_did_not_start_it_and_others_are_left_alone(run_dir: Path, tmp_path: Path) -> None:
    other_dir = str(tmp_path / "other")
    mine, other = (
        subprocess.Popen(SLEEP, env=os.environ | {RUN_DIR_VARIABLE: name}, start_new_session=True)
        for name in (str(run_dir), other_dir)
    )
    try:
        wait_until(
            lambda: {mine.pid, other.pid} <= {process.pid for process in marked_processes()},
            timeout_s=10,
            what="both runs to carry their marks",
        )

        assert end_run(str(run_dir))

        assert mine.wait(timeout=5) == -signal.SIGKILL
        assert other.poll() is None
    finally:
        for process in (mine, other):
            process.kill()
            process.wait()


def test_a_process_with_no_mark_in_a_session_of_the_run_is_ended_with_it(run_dir: Path) -> None:
    leader = subprocess.Popen(
        ["bash", "-c", f'env -i {SLEEP[0]} -c "import time; time.sleep(600)" & echo $! > "$0/new"; '
         'mv "$0/new" "$0/pid"; exec sleep 600', str(run_dir)],
        env=os.environ | {RUN_DIR_VARIABLE: str(run_dir)},
        start_new_session=True,
    )  # fmt: skip
    wait_until((run_dir / "pid").exists, timeout_s=10, what="the process with no mark")
    pid = escaped(run_dir)

    assert end_run(str(run_dir))

    leader.wait(timeout=5)
    wait_until(lambda: has_ended(pid), timeout_s=5, what="the process with no mark to end")


def test_a_supervisor_is_told_from_the_run_that_it_was_started_for(run_dir: Path) -> None:
    supervisor = subprocess.Popen(SLEEP, env=os.environ | {SUPERVISOR_VARIABLE: str(run_dir)}, start_new_session=True)
    try:
        wait_until(
            lambda: supervisor.pid in {process.pid for process in marked_processes()}, timeout_s=10, what="its mark"
        )
        (marked,) = [process for process in marked_processes() if process.pid == supervisor.pid]

        assert (marked.run_dir, marked.supervisor_of) == (None, str(run_dir))
        assert end_run(str(run_dir))
        assert supervisor.poll() is None
    finally:
        supervisor.kill()
        supervisor.wait()


def test_an_identity_is_that_of_one_process_and_of_none_after_its_end() -> None:
    process = subprocess.Popen(SLEEP)
    whom = identity(process.pid)
    assert is_alive(whom)
    assert not is_alive(whom.replace(":", ":1", 1))

    process.kill()
    process.wait()

    assert not is_alive(whom)
