"""Fitness: whether this host can begin runs at all.

A host that cannot, but is up, has free devices at any time: it would be given one job after the other, and lose them
all. So it closes itself, with a reason, until what failed is seen to work again.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import structlog

from jobs.outcomes import backoff_s
from worker.clock import clock

MOST_FAILURES = 2
"""Supervisors in a row that ended before their claim, and the host gets no new jobs: one may be killed by chance."""
FIRST_REST_S = 30.0
"""Seconds until the next trial where the host fails again although the one before had succeeded; then twice as long."""
LONGEST_REST_S = 600.0
TRIAL = [sys.executable, "-c", "import worker.supervisor"]
"""What any supervisor has to do first, and fails where the installation does."""
MOST_CHARACTERS = 300

log = structlog.get_logger()


class Fitness:
    """What this host's worker knows of its ability to begin runs."""

    def __init__(self, run_root: Path) -> None:
        self._run_root = run_root
        self._failures = 0
        """Placements in a row that no supervisor claimed."""
        self._last_words: str | None = None
        """Why the last of them failed, while the host is closed for that."""
        self._trial: subprocess.Popen[bytes] | None = None
        self._try_at = float("inf")
        """Time on `clock` of the next trial."""

    def fault(self) -> str | None:
        """Return why no run can begin here, in words that follow "it is"; None where nothing is known to be wrong."""
        return write_fault(self._run_root) or self._last_words

    def note_begun(self) -> None:
        """A supervisor that was started here has claimed its placement."""
        if self._last_words is None:
            self._failures = 0

    def note_not_begun(self, why: str) -> None:
        """A placement was given up before any supervisor claimed it."""
        if self._last_words is not None or write_fault(self._run_root) is not None:
            return  # the host is closed already: for that, or by its next heartbeat, which looks at the run root
        self._failures += 1
        if self._failures < MOST_FAILURES:
            return
        told = "".join(each if each.isprintable() else " " for each in why).strip()
        self._last_words = f"unable to start supervisors: {told[:MOST_CHARACTERS]}"
        again = self._failures - MOST_FAILURES
        rest_s = backoff_s(again, first_s=FIRST_REST_S, longest_s=LONGEST_REST_S) if again else 0.0
        self._try_at = clock() + rest_s
        log.error("host_closed", reason=self._last_words, trial_after_s=rest_s)

    def look(self) -> None:
        """Go on with finding out whether supervisors can be started again; returns at once, to be called again."""
        if self._last_words is None:
            return
        if self._trial is None:
            if clock() >= self._try_at:
                self._trial = _start_trial()
                self._try_at = clock() + FIRST_REST_S
        elif self._trial.poll() is not None:
            if self._trial.returncode == 0:
                # Its failures still count: it is closed again, and for longer, by the next one.
                log.info("host_opened")
                self._last_words = None
            self._trial = None


def write_fault(run_root: Path) -> str | None:
    """Return why nothing can be written to a run root, in words that follow "it is", or None where it can."""
    error = write_error(run_root)
    return None if error is None else f"unable to write its run root {run_root}: {error.strerror}"


def write_error(folder: Path) -> OSError | None:
    """Return the error by which nothing can be written to a folder, or None where it can."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"\0")
            file.flush()
    except OSError as error:
        return error
    return None


def _start_trial() -> "subprocess.Popen[bytes] | None":
    quiet = subprocess.DEVNULL
    try:
        return subprocess.Popen(TRIAL, stdin=quiet, stdout=quiet, stderr=quiet)
    except OSError as error:  # such as for want of memory: the next look tries again
        log.warning("trial_not_started", error=str(error))
        return None
