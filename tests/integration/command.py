"""The command `rankzero`: in this process, where a call takes milliseconds, or as a process, as people start it."""

import io
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rankzero.cli.app import main
from tests.waiting import wait_until

PROGRAM = str(Path(sys.executable).parent / "rankzero")
DETACHED = ("submit", "--model", "resnet18", "--data", "digits", "-d", "--json")
NOBODYS = {"XDG_CONFIG_HOME": "/nonexistent", "COLUMNS": "200"}
"""Where no token is stored."""


@dataclass(frozen=True)
class Done:
    """How a call of the command ended."""

    returncode: int
    stdout: str
    stderr: str


def rankzero(url: str, *arguments: str, stdin: str | None = None, **variables: str) -> Done:
    """Run it against the service at `url`, with no terminal."""
    stdout, stderr, code = io.StringIO(), io.StringIO(), 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["rankzero", *arguments])
        patch.setattr(sys, "stdin", io.StringIO(stdin or ""))
        for name, value in (NOBODYS | {"RANKZERO_URL": url} | variables).items():
            patch.setenv(name, value)
        with redirect_stdout(stdout), redirect_stderr(stderr):
            try:
                main()
            except SystemExit as ended:
                code = int(ended.code or 0)
    return Done(code, stdout.getvalue(), stderr.getvalue())


def rankzero_process(url: str, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run it as a process of its own."""
    return subprocess.run(
        [PROGRAM, *arguments],
        env=os.environ | NOBODYS | {"RANKZERO_URL": url} | variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def document(done: "Done | subprocess.CompletedProcess[str]") -> Any:
    """The one JSON document on standard output."""
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class Terminal:
    """The command in a terminal of 80 columns."""

    def __init__(self, process: "subprocess.Popen[bytes]", descriptor: int) -> None:
        self._process = process
        self._descriptor = descriptor
        self.text = ""
        """What it has shown, without the sequences that colour it and move the cursor."""

    def wait_for(self, pattern: str) -> None:
        """Wait until it has shown what matches."""
        wait_until(lambda: re.search(pattern, self._read()), timeout_s=30, what=lambda: f"{pattern!r} in:\n{self.text}")

    def type(self, text: str) -> None:
        """Type into it."""
        os.write(self._descriptor, text.encode())

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self._process.send_signal(signal.SIGINT)

    def exit_code(self) -> int:
        """Wait for its end."""
        wait_until(
            lambda: self._read() is not None and self._process.poll() is not None,
            timeout_s=30,
            what=lambda: f"the command to end; it has shown:\n{self.text}",
        )
        return self._process.returncode

    def _read(self) -> str:
        with suppress(OSError):  # its other end is closed
            while select.select([self._descriptor], [], [], 0)[0]:
                shown = os.read(self._descriptor, 65_536).decode(errors="replace")
                self.text += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
        return self.text


@contextmanager
def on_a_terminal(url: str, *arguments: str, **variables: str) -> Iterator[Terminal]:
    """Run it as a process in a terminal of its own, for the block."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [PROGRAM, *arguments],
        env=os.environ | NOBODYS | {"RANKZERO_URL": url, "COLUMNS": "80", "LINES": "24", "TERM": "xterm"} | variables,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,  # /dev/tty is not that of who runs the tests
    )
    os.close(theirs)
    try:
        yield Terminal(process, ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
