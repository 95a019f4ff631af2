"""Care for this host's placements: start their supervisors, end those whose supervisor is gone, end strays."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import structlog
from sqlalchemy.exc import SQLAlchemyError

from jobs.database import Database
from jobs.errors import StaleAttemptError
from jobs.settings import Settings
from jobs.store import attempts
from jobs.tables import Placement
from trainer.process_identity import identity, is_alive
from trainer.run_dir import RUN_DIR_VARIABLE
from worker import ending
from worker.processes import (
    SUPERVISOR_VARIABLE,
    end_run,
    run_dirs_in_use,
    signal_process,
)

LEAVE_S = 5
"""Seconds that a supervisor gets to leave by itself after it has ended its attempt."""

log = structlog.get_logger()


class Care:
    """Looks after the placements of one host. The tick and the wake-ups share it, one round at a time."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._settings = settings
        self._turn = threading.Lock()
        self._started: dict[int, subprocess.Popen[bytes]] = {}
        """Supervisors that this worker started, by placement; those of a worker before it are known by identity."""

    def round(self) -> None:
        """Bring the processes of this host in line with its open placements."""
        with self._turn:
            with self._database.session_scope(read_only=True) as session:
                placements = attempts.open_placements(session, self._settings.host_name)
            self._end_strays()
            for placement in placements:
                try:
                    self._look_after(placement)
                except SQLAlchemyError:
                    raise
                except Exception:  # one run directory that cannot be made or read must not cost the others their care
                    log.exception("placement_not_cared_for", job_id=placement.job_id, attempt=placement.attempt)
            self._reap_children({placement.id for placement in placements})

    def stop_supervisors(self, *, timeout_s: float) -> None:
        """Ask every supervisor of this host to stop, with a checkpoint, and wait for it: the embedded service ends."""
        with self._turn:
            with self._database.session_scope(read_only=True) as session:
                placements = attempts.open_placements(session, self._settings.host_name)
            owners = [placement.supervisor for placement in placements if placement.supervisor is not None]
            for child in self._started.values():
                with suppress(ProcessLookupError):
                    owners.append(identity(child.pid))
            for owner in owners:
                signal_process(owner, signal.SIGTERM)
            deadline = time.monotonic() + timeout_s
            while any(map(is_alive, owners)) and time.monotonic() < deadline:
                time.sleep(0.1)

    def _look_after(self, placement: Placement) -> None:
        if placement.claimed_at is None:
            self._start_or_give_up(placement)
        elif placement.supervisor is not None and not is_alive(placement.supervisor):
            self._rescue(placement, "its supervisor died")

    def _start_or_give_up(self, placement: Placement) -> None:
        child = self._started.get(placement.id)
        if child is None:
            self._started[placement.id] = self._start_supervisor(placement)
        elif child.poll() is not None:
            tail = _tail(Path(placement.run_dir) / "supervisor.log")
            self._rescue(placement, f"its supervisor exited with status {child.returncode} before its claim: {tail}")

    def _start_supervisor(self, placement: Placement) -> "subprocess.Popen[bytes]":
        """Start a supervisor that outlives this worker. It claims the placement itself: of two, one leaves."""
        run_dir = Path(placement.run_dir)
        run_dir.mkdir(parents=True, exist_ok=True)
        with (run_dir / "supervisor.log").open("ab") as output:
            child = subprocess.Popen(
                [sys.executable, "-m", "worker.supervisor", str(placement.id)],
                env=os.environ | {SUPERVISOR_VARIABLE: placement.run_dir},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        log.info("supervisor_started", job_id=placement.job_id, attempt=placement.attempt, pid=child.pid)
        return child

    def _rescue(self, placement: Placement, why: str) -> None:
        """End a placement whose supervisor is gone: first prove its ranks dead, then ship, then free its devices."""
        if not end_run(placement.run_dir):
            return  # the next round tries again; meanwhile the devices stay leased
        try:
            with self._database.session_scope(read_only=True) as session:
                current = attempts.get_placement(session, placement.id)
            if current.supervisor != placement.supervisor or current.ended_at is not None:
                return  # claimed or ended since this round read it
            ending.finish(self._database, current, ending.lost(why))
        except StaleAttemptError as error:
            log.info("ended_by_others", reason=str(error))

    def _end_strays(self) -> None:
        """Kill what still runs here for attempts that have ended, such as the ranks of a supervisor that was stopped.

        It comes before every start: a device that is leased anew is free of its last user.
        """
        for variable, idle_s in ((SUPERVISOR_VARIABLE, LEAVE_S), (RUN_DIR_VARIABLE, 0)):
            in_use = run_dirs_in_use(variable)
            with self._database.session_scope(read_only=True) as session:
                ended = attempts.ended_run_dirs(session, self._settings.host_name, list(in_use), for_s=idle_s)
            for run_dir in ended:
                log.warning("stray_processes", run_dir=run_dir, pids=in_use[run_dir])
                end_run(run_dir, variable=variable)

    def _reap_children(self, open_ids: set[int]) -> None:
        """Collect the exit status of supervisors that are done, so that no zombie is left."""
        for placement_id, child in list(self._started.items()):
            if child.poll() is not None and placement_id not in open_ids:
                del self._started[placement_id]


def _tail(path: Path, *, size_bytes: int = 1000) -> str:
    try:
        return path.read_bytes()[-size_bytes:].decode("utf-8", "replace").strip()
    except FileNotFoundError:
        return ""
