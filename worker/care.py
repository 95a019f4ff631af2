"""Care for this host's placements: start their supervisors, end those whose supervisor is gone, end strays."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import structlog
from sqlalchemy.exc import SQLAlchemyError

from jobs.database import Database, now
from jobs.errors import StaleAttemptError
from jobs.settings import Settings
from jobs.store import attempts, hosts, leases, quarantine
from jobs.tables import Placement
from trainer.log_tail import log_tail
from trainer.process_identity import identity, is_alive, is_local
from worker import cgroups, ending, failure_reports
from worker.clock import clock
from worker.fitness import Fitness
from worker.processes import SUPERVISOR_VARIABLE, end_run, kill_all, marked_processes, signal_process

LEAVE_S = 5
"""Seconds that a supervisor gets to leave by itself after it has ended its attempt."""
DIE_S = 5
"""Seconds that the processes of a run get to be gone once they are killed, before the next round tries again."""
LOOK_FOR_STRAYS_S = 10
"""Seconds between two looks at all processes of the host, where nothing is to be started."""

log = structlog.get_logger()


class Care:
    """Looks after the placements of one host. The tick and the wake-ups share it, one round at a time."""

    def __init__(self, database: Database, settings: Settings, fitness: Fitness) -> None:
        self._database = database
        self._settings = settings
        self._fitness = fitness
        self._turn = threading.Lock()
        self._looked_for_strays_at = float("-inf")
        self._supervisors: dict[int, str] = {}
        """Identity of the supervisor of each claimed placement, as of the last round."""
        self._started: dict[int, subprocess.Popen[bytes]] = {}
        """Supervisors that this worker started, by placement; those of a worker before it are known by identity."""
        self._unkillable_since: dict[str, float] = {}
        """Time on `clock` since when a process of a run could not be killed, by run directory."""
        self._given_up: dict[int, str] = {}
        """Why this worker gave up placements that it could not end yet, by id."""
        self._me = identity(os.getpid())

    def round(self) -> None:
        """Bring the processes of this host in line with its open placements."""
        with self._turn:
            self._fitness.look()
            with self._database.session_scope(read_only=True) as session:
                placements = attempts.open_placements(session, self._settings.host_name, worker=self._me)
            self._supervisors = {each.id: each.supervisor for each in placements if each.supervisor is not None}
            in_use = self._end_strays(at_once=any(each.claimed_at is None for each in placements))
            for placement in placements:
                try:
                    self._look_after(placement, in_use)
                except SQLAlchemyError:
                    raise
                except Exception:  # one run directory that cannot be made or read must not cost the others their care
                    log.exception("placement_not_cared_for", job_id=placement.job_id, attempt=placement.attempt)
            open_ids = {placement.id for placement in placements}
            self._given_up = {each: why for each, why in self._given_up.items() if each in open_ids}
            self._reap_children(open_ids)

    def end_expired(self, expired: set[int]) -> set[int]:
        """End this host's placements of those whose leases ran out, as a supervisor would that is stopped or hangs.

        Returns those that are this host's: nobody else need end them, now or in a later round.
        """
        with self._turn:
            with self._database.session_scope(read_only=True) as session:
                placements = attempts.open_placements(session, self._settings.host_name, worker=self._me)
            own = set()
            for placement in placements:
                is_ours = placement.supervisor is None or is_local(placement.supervisor)
                if placement.id not in expired or not is_ours:
                    continue
                own.add(placement.id)
                why = "its lease ran out: no word from its supervisor"
                if placement.supervisor is None:
                    self._give_up(placement, why, is_unfit=placement.id in self._started)  # which hangs, then
                else:
                    if placement.supervisor != self._me:  # else given up by this worker, which is not to end for it
                        signal_process(placement.supervisor, signal.SIGKILL)
                    self._rescue(placement, why)
            return own

    def kill_expired(self, expired: Sequence[Placement]) -> None:
        """Kill this host's supervisors of those whose leases ran out, and their ranks with them. Writes nothing.

        Needs no turn and no hold of the host's name: one that is past its lease may have nothing running.
        """
        for placement in expired:
            supervisor = placement.supervisor
            if placement.host_name != self._settings.host_name or supervisor in (None, self._me):
                continue
            if is_local(supervisor) and is_alive(supervisor):
                log.warning("supervisor_past_its_lease", job_id=placement.job_id, attempt=placement.attempt)
                signal_process(supervisor, signal.SIGKILL)

    def stop_supervisors(self, *, timeout_s: float) -> None:
        """Ask every supervisor of this host to stop, with a checkpoint, and wait for it. Needs no database."""
        with self._turn:
            supervisors = set(self._supervisors.values())
            for child in self._started.values():
                with suppress(ProcessLookupError):
                    supervisors.add(identity(child.pid))
            for supervisor in supervisors:
                signal_process(supervisor, signal.SIGTERM)
            deadline = time.monotonic() + timeout_s
            while any(map(is_alive, supervisors)) and time.monotonic() < deadline:
                time.sleep(0.1)

    def _look_after(self, placement: Placement, in_use: dict[str, bool]) -> None:
        if placement.claimed_at is None:
            self._start_or_give_up(placement, in_use)
            return
        assert placement.supervisor is not None, "a claim names its supervisor"
        if placement.supervisor != self._me and placement.id in self._started:
            self._fitness.note_begun()
        # Of one in another container nothing can be said: its lease decides.
        is_dead = is_local(placement.supervisor) and not is_alive(placement.supervisor)
        if placement.supervisor == self._me:  # it was given up, and could not be ended yet
            self._rescue(placement, self._given_up.get(placement.id, "its host's worker gave it up"))
        elif is_dead:
            self._rescue(placement, "its supervisor died")

    def _start_or_give_up(self, placement: Placement, in_use: dict[str, bool]) -> None:
        if still_used := sorted(in_use.keys() & set(placement.devices)):
            log.error("devices_not_free", job_id=placement.job_id, devices=still_used)
            if any(in_use[name] for name in still_used):
                self._give_up(placement, f"a process of an earlier run has {', '.join(still_used)} and will not die")
            return
        child = self._started.get(placement.id)
        if child is None:
            try:
                self._started[placement.id] = self._start_supervisor(placement)
            except OSError as error:
                self._give_up(placement, f"its supervisor could not be started: {error}", is_unfit=True)
        elif child.poll() is not None:
            tail = log_tail(Path(placement.run_dir) / "supervisor.log", most_bytes=1000) or ""
            why = f"its supervisor exited with status {child.returncode} before its claim: {tail}"
            self._give_up(placement, why, is_unfit=True)

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

    def _give_up(self, placement: Placement, why: str, *, is_unfit: bool = False) -> None:
        """End a placement that no supervisor has claimed, by claiming it: a late supervisor then finds it taken.

        `is_unfit` says that this host may be unable to start any.
        """
        with self._database.session_scope() as session:
            try:
                placement = leases.claim(session, placement.id, self._me)
            except StaleAttemptError as error:
                log.info("claimed_meanwhile", reason=str(error))
                return
        self._given_up[placement.id] = why
        if is_unfit:
            # Before its end, after which there is a new plan: that must find this host closed.
            self._fitness.note_not_begun(why)
            with self._database.session_scope() as session:
                hosts.set_fault(session, self._settings.host_name, self._fitness.fault())
        self._rescue(placement, why)

    def _rescue(self, placement: Placement, why: str) -> None:
        """End a placement whose supervisor is gone: first prove its ranks dead, then ship, then free its devices."""
        with self._database.session_scope(read_only=True) as session:
            current = attempts.get_placement(session, placement.id)
        if current.supervisor != placement.supervisor or current.ended_at is not None:
            return  # claimed or ended since this round read it
        still_used = None
        if not self._end_run(placement):
            still_used = self._given_up_on(placement)
            if still_used is None:
                return  # the next round tries again; meanwhile the devices stay leased
        try:
            ending.finish(
                self._database,
                current,
                failure_reports.lost(why),
                spends_retry=current.supervisor != self._me,  # given up: nothing that the job does came into it
                still_used=still_used,
            )
        except StaleAttemptError as error:
            log.info("ended_by_others", reason=str(error))

    def _end_run(self, placement: Placement) -> bool:
        """Kill every process of a run and return whether none is left; remember since when one could not be killed.

        Where that is known one look each time will do: to wait for all such runs again would keep the others waiting.
        """
        is_known = placement.run_dir in self._unkillable_since
        if end_run(placement.run_dir, timeout_s=0 if is_known else DIE_S):
            self._unkillable_since.pop(placement.run_dir, None)
            return True
        self._unkillable_since.setdefault(placement.run_dir, clock())
        return False

    def _given_up_on(self, placement: Placement) -> str | None:
        """Why a run's devices are to be taken away, where a process of it could not be killed for too long."""
        since = self._unkillable_since.get(placement.run_dir, float("inf"))
        return failure_reports.unkillable(placement) if clock() - since > self._settings.unkillable_s else None

    def _end_strays(self, *, at_once: bool) -> dict[str, bool]:
        """Kill what still runs here for attempts that have ended, such as the ranks of a supervisor that was stopped.

        It comes before every start (`at_once`), so that a device that is leased anew is free of its last user. Returns
        the names of the devices whose last user cannot be killed, and whether they have been taken away for it.
        """
        if not at_once and time.monotonic() - self._looked_for_strays_at < LOOK_FOR_STRAYS_S:
            return {}
        self._looked_for_strays_at = time.monotonic()
        marked = marked_processes()
        supervised = [process.supervisor_of for process in marked if process.supervisor_of is not None]
        runs = [process.run_dir for process in marked if process.run_dir is not None]
        runs += cgroups.run_dirs(self._settings.run_root)
        with self._database.session_scope(read_only=True) as session:
            host_name = self._settings.host_name
            left = attempts.ended_placements(session, host_name, run_dirs=supervised, for_s=LEAVE_S)
            ended = attempts.ended_placements(session, host_name, run_dirs=runs, for_s=0)
        # The supervisors first: one that wakes up now would start what is about to be ended.
        stray = {placement.run_dir for placement in left}
        kill_all(process.pid for process in marked if process.supervisor_of in stray)
        in_use: dict[str, bool] = {}
        for placement in ended:
            log.warning("stray_processes", run_dir=placement.run_dir)
            if self._end_run(placement):
                continue
            why = self._given_up_on(placement)
            in_use |= dict.fromkeys(placement.devices, why is not None)
            if why is not None:
                with self._database.session_scope() as session:
                    quarantine.take_away(session, placement, why=why, at=now(session))
        return in_use

    def _reap_children(self, open_ids: set[int]) -> None:
        """Collect the exit status of supervisors that are done, so that no zombie is left."""
        for placement_id, child in list(self._started.items()):
            if child.poll() is not None and placement_id not in open_ids:
                del self._started[placement_id]
