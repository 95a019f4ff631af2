"""Child processes that cannot outlive the test process, not even when it is killed with SIGKILL."""

import ctypes
import os
import pwd
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

PR_SET_PDEATHSIG = 1  # linux/prctl.h


def start_child(
    command: Sequence[str],
    *,
    log: Path,
    folder: Path,
    user: str | None = None,
    death_signal: signal.Signals = signal.SIGKILL,
    environment: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start `command` in `folder`, as `user` if given, appending its output to the file `log`.

    The kernel sends `death_signal` to the child when the *thread* that called this ends, so call it from one that lives
    as long as the child should: under pytest and its workers that is the main thread, fixtures included. The signal
    survives neither a change of user nor a fork, which is why this module itself runs between Popen and the command:
    it becomes the user, arms the signal, looks whether the parent died meanwhile, and then becomes the command.
    """
    with log.open("ab") as output:
        return subprocess.Popen(
            [
                # -I: neither this folder nor the environment may decide what the helper imports.
                *(sys.executable, "-I", str(Path(__file__).resolve())),
                *(str(os.getpid()), str(int(death_signal)), user or "", "--", *command),
            ],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # A Ctrl-C at the terminal is the test process's to handle: it stops its servers in order.
            start_new_session=True,
        )


def first_on_path(folder: Path) -> tuple[str, ...]:
    """The command that starts another one which imports from `folder` before all else."""
    return ("env", f"PYTHONPATH={os.pathsep.join(filter(None, (str(folder), os.environ.get('PYTHONPATH'))))}")


def _become(parent_pid: int, death_signal: int, user: str, command: list[str]) -> None:
    if user:
        account = pwd.getpwnam(user)
        os.setgroups([account.pw_gid])
        os.setgid(account.pw_gid)
        os.setuid(account.pw_uid)
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(PR_SET_PDEATHSIG, death_signal) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
        if os.getppid() != parent_pid:
            sys.exit(f"the parent {parent_pid} died before the signal was armed")
    os.execvp(command[0], command)  # noqa: S606  (replacing this process without a shell is the purpose)


if __name__ == "__main__":
    _become(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[5:])
