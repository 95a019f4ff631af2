"""The Chromium that the tests drive: the system's, or one that playwright fetches, or one that apt installs."""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
INSTALL_TIMEOUT_S = 600


class NoChromium(RuntimeError):
    """There is no Chromium and none can be had this way; the text says why."""


@dataclass(frozen=True)
class Way:
    """A way to come by a Chromium."""

    name: str
    find: Callable[[], Path]
    """Returns the program. Raises NoChromium."""


def launch(playwright: Playwright) -> Browser:
    """Start a Chromium without a window."""
    program = find_chromium(ways(playwright))
    quiet = ["--disable-gpu", "--disable-dev-shm-usage", "--disable-quic", "--disable-sync"]
    # Its sandbox does not start as root, and it is shown nothing but our own pages.
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    return playwright.chromium.launch(executable_path=program, args=[*quiet, *sandbox])


def find_chromium(ways: Sequence[Way]) -> Path:
    """Return the first Chromium that there is or can be had.

    Raises:
        NoChromium: none; the tests of the dashboard then fail, since skipping them would hide that they never ran.
    """
    reasons = []
    for way in ways:
        try:
            return way.find()
        except NoChromium as reason:
            reasons.append(f"{way.name}: {reason}")
    raise NoChromium(
        "the tests of the dashboard need a Chromium, and there is none. Tried, one after another:\n  "
        + "\n  ".join(reasons)
        + "\nInstall one (Debian: apt-get install chromium; or: playwright install --with-deps chromium)"
    )


def ways(playwright: Playwright) -> list[Way]:
    """All ways, the quickest first."""
    return [
        Way("on PATH", on_path),
        Way("playwright install chromium", lambda: from_playwright(Path(playwright.chromium.executable_path))),
        Way("apt-get install chromium", from_apt),
    ]


def on_path(names: Sequence[str] = NAMES) -> Path:
    """Return the first of these programs that runs: on some systems `chromium-browser` only says how to install it."""
    reasons = []
    for name in names:
        program = shutil.which(name)
        if program is None:
            reasons.append(f"no {name}")
        elif not _runs(program):
            reasons.append(f"{program} does not run")
        else:
            return Path(program)
    raise NoChromium(", ".join(reasons))


def from_playwright(
    program: Path, install: Sequence[str] = (sys.executable, "-m", "playwright", "install", "chromium")
) -> Path:
    """Return the Chromium that playwright keeps for itself at `program`, fetched first where it is not there."""
    with _turn():
        if not program.is_file():
            _run(install)
    if not _runs(str(program)):
        raise NoChromium(f"{program} does not run, perhaps for want of a library of the system")
    return program


def from_apt() -> Path:
    """Return the Chromium of a Debian or Ubuntu system, installed first."""
    if shutil.which("apt-get") is None:
        raise NoChromium("this system has no apt-get")
    if os.geteuid() != 0:
        raise NoChromium("only root may install packages")
    with _turn():
        _run(["apt-get", "update", "--quiet"])
        _run(["apt-get", "install", "--quiet", "--yes", "--no-install-recommends", "chromium"])
    return on_path()


def _runs(program: str) -> bool:
    try:
        return subprocess.run([program, "--version"], capture_output=True, timeout=60, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _run(command: Sequence[str]) -> None:
    """Run a command to its end. Raises NoChromium with the last that it said."""
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=INSTALL_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoChromium(str(error)) from error
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip() or f"status {done.returncode}").splitlines()
        raise NoChromium(f"{' '.join(command)} failed: {said[-1]}")


@contextmanager
def _turn() -> Iterator[None]:
    """Wait until no other test process installs one."""
    with (Path(tempfile.gettempdir()) / f"rankzero-test-chromium-{os.getuid()}").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
