"""The supervisor: the one process that owns a placement, from its claim to its proven end.

    python -m worker.supervisor PLACEMENT_ID

It runs in a session of its own and outlives its worker. When it dies, its ranks die with it (parent-death signal),
and its host's worker ends the placement. When it is cut off from the database, it ends its ranks before its lease
runs out, so that whoever gets the devices next gets them free.
"""

import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import structlog
from pydantic import ValidationError
from sqlalchemy.exc import SQLAlchemyError

from jobs.database import AWAY, Database, get_database
from jobs.errors import StaleAttemptError
from jobs.logs import configure_logs
from jobs.settings import get_settings
from jobs.states import Intent
from jobs.store import hosts, leases
from jobs.tables import Placement
from trainer.error_report import ErrorReport
from trainer.errors import CheckpointError, ConfigError, DataError
from trainer.parent_death import PARENT_PID_VARIABLE
from trainer.process_identity import identity, is_alive
from trainer.run_dir import GRACE_VARIABLE, RUN_DIR_VARIABLE, RunDir
from worker import cgroups, ending, failure_reports, missing_schema, stops, storage
from worker.backstop import Backstop
from worker.clock import clock
from worker.copies import Copies
from worker.link import POLL_S, Link, patiently
from worker.preparation import Preparation, Prepared
from worker.processes import adopt_orphans, end_run
from worker.stops import Stop, StopRequest
from worker.time_limit import TimeLimit

WATCH_S = 0.1
"""Seconds between two looks at the trainer, or at what comes before it."""
SECRETS = ("RANKZERO_DATABASE_URL", "RANKZERO_BROKER_URL", "RANKZERO_KEY_FILE", "RANKZERO_TOKEN")
"""Variables that the trainer, which runs the user's code, has no use for."""

log = structlog.get_logger()


class Supervisor:
    """Runs one claimed placement."""

    def __init__(self, database: Database, placement: Placement, stop: StopRequest, *, lease_until: float) -> None:
        self._settings = get_settings()
        self._database = database
        self._placement = placement
        self._stop = stop
        self._run_dir = RunDir(Path(placement.run_dir))
        self._link = Link(database, placement, lease_until=lease_until)
        self._cut_off_grace_s = min(self._settings.checkpoint_grace_s, self._settings.lease_s / 4)
        self._time_limit: TimeLimit | None = None
        self._backstop: Backstop | None = None
        self._copies: Copies | None = None
        self._stopped_for: Stop | None = None
        """Why the ranks were told to stop, if they were."""

    def run(self) -> None:
        """Train, prove the end, and tell the database."""
        self._link.start()
        try:
            report = self._train()
        except OSError as error:
            report = failure_reports.not_started(error)
        except ValidationError as error:
            report = failure_reports.spec_unreadable(error)
        except StaleAttemptError as error:
            log.warning("ended_by_others", reason=str(error))
            report = failure_reports.lost("its attempt was ended by others")
        except (CheckpointError, ConfigError, DataError) as error:
            report = ErrorReport.of(error, cause=error.cause, rank=None, traceback=None)
        except AWAY as error:  # for a whole lease
            log.error("database_away", error=str(error))
            report = self._note_stop(stops.cut_off(grace_s=self._cut_off_grace_s))
        ranks_ended_at = clock()
        still_used = self._end_run()
        if self._copies is not None:
            self._copies.finish(timeout_s=self._settings.copy_grace_s, is_pointless=self._must_not_wait)
        if _is_orphaned():
            return
        self._link.stop()
        if not self._link.fenced:
            self._finish(report, still_used=still_used, ranks_ended_at=ranks_ended_at)

    def _train(self) -> ErrorReport:
        """Run the trainer to its end; return why it stopped, should its files not say."""
        run_root = self._run_dir.path.parent.parent
        free_bytes = storage.free_bytes(run_root)
        if stop := stops.short_of_disk(run_root, free_bytes, self._settings):
            told = partial(hosts.set_free_bytes, name=self._placement.host_name, free_bytes=free_bytes)
            patiently(self._database, told, until=self._link.lease_until)
            return self._note_stop(stop)
        prepared = self._prepare()
        if isinstance(prepared, ErrorReport):
            return prepared
        if self._placement.node_rank == 0 and prepared.time_limit_s is not None:
            limit = prepared.time_limit_s
            self._time_limit = TimeLimit(limit, trained_s=prepared.trained_s, run_dir=self._run_dir)
        if stop := self._must_stop():
            return self._note_stop(stop)
        if self._placement.node_rank == 0 and prepared.checkpoint_root is not None:
            self._copies = Copies(self._database, self._placement, prepared.checkpoint_root)
            self._copies.start()
        self._run_dir.create(prepared.config)
        if (hang_limit_s := prepared.config.hang_limit_s) is not None:
            ranks = prepared.config.local_world_size
            self._backstop = Backstop(self._run_dir, local_world_size=ranks, limit_s=hang_limit_s)
        return self._watch(self._start_trainer(prepared))

    def _prepare(self) -> Prepared | ErrorReport:
        """Return what the trainer is started with, or why the run must end before that, which waits for no read."""
        preparation = Preparation(self._database, self._placement, until=lambda: self._link.lease_until)
        preparation.start()
        while not preparation.has_ended(within_s=WATCH_S):
            if self._link.fenced or _is_orphaned():
                preparation.abandon()
                return failure_reports.lost("its attempt was ended by others")
            if (stop := self._must_stop()) is not None:
                preparation.abandon()
                return self._note_stop(stop)
        return preparation.result()

    def _start_trainer(self, prepared: Prepared) -> "subprocess.Popen[bytes]":
        """Start the trainer, from this thread: the ranks' parent-death signal watches it."""
        run_dir = self._placement.run_dir
        inherited = {name: value for name, value in os.environ.items() if name not in SECRETS}
        own = {
            RUN_DIR_VARIABLE: run_dir,
            PARENT_PID_VARIABLE: str(os.getpid()),
            GRACE_VARIABLE: str(self._settings.checkpoint_grace_s),
        }
        command = [sys.executable, "-m", "trainer", run_dir]
        group = cgroups.make(self._run_dir.path)
        with (self._run_dir.path / "trainer.log").open("ab") as output:
            output.write("".join(f"{line}\n" for line in prepared.devices).encode())
            output.flush()  # before the trainer's first word
            return subprocess.Popen(
                command if group is None else group.entering(command),
                env=inherited | prepared.secrets | prepared.environment | own,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def _watch(self, trainer: "subprocess.Popen[bytes]") -> ErrorReport:
        """Wait for the trainer to end, and end it when it must."""
        kill_at = float("inf")
        reason: ErrorReport | None = None
        while trainer.poll() is None:
            if self._link.fenced or _is_orphaned():
                trainer.kill()
                return failure_reports.lost("its attempt was ended by others")
            if (stop := self._must_stop()) is not None:
                if reason is None:
                    reason = self._note_stop(stop)
                    trainer.terminate()
                    kill_at = clock() + stop.grace_s
                elif stop.report.message != reason.message:  # such as a cancel while a pause is being saved
                    reason = self._note_stop(stop)
                    kill_at = min(kill_at, clock() + stop.grace_s)
            elif self._backstop is not None and (quiet_s := self._backstop.hangs_for_s()) is not None:
                trainer.kill()  # the ranks die with it
                return failure_reports.hung(quiet_s)
            if clock() > kill_at:
                trainer.kill()
            time.sleep(WATCH_S)
        return reason or failure_reports.exited(trainer.returncode)

    def _must_stop(self) -> Stop | None:
        """Why the ranks must stop now, if they must."""
        settings = self._settings
        if clock() > self._link.lease_until - settings.lease_s / 10 - self._cut_off_grace_s:
            return stops.cut_off(grace_s=self._cut_off_grace_s)
        if (stop := stops.ordered(self._link.orders, settings)) is not None:
            return stop
        if self._stop.is_made:
            return stops.host_going_down(settings)
        if self._time_limit is not None and self._time_limit.is_over:
            return Stop(failure_reports.out_of_time(self._time_limit.limit_s), settings.checkpoint_grace_s)
        return None

    def _must_not_wait(self) -> bool:
        """Whether a run that has ended must be told of at once, though not all of its checkpoints are copied."""
        is_cut_off = clock() > self._link.lease_until - self._settings.lease_s / 10
        is_killed_soon = clock() > self._stop.made_at + self._settings.checkpoint_grace_s
        is_cancelled = self._link.orders.intent is Intent.CANCEL
        return self._link.fenced or _is_orphaned() or is_cut_off or is_killed_soon or is_cancelled

    def _note_stop(self, stop: Stop) -> ErrorReport:
        self._stopped_for = stop
        return stop.report

    def _end_run(self) -> str | None:
        """Leave no process of the run; where one cannot be killed for too long, return what to say of its devices."""
        until = clock() + self._settings.unkillable_s
        while not end_run(self._placement.run_dir, with_descendants=True):
            log.error("devices_still_held", devices=self._placement.devices)
            if clock() > until:
                return failure_reports.unkillable(self._placement)
        return None

    def _finish(self, report: ErrorReport, *, still_used: str | None, ranks_ended_at: float) -> None:
        """End the placement in the database, for as long as that takes: the ranks are dead, so nothing is at stake."""
        # Celery, late: this sends one message at its end, and somebody waits for its start.
        from jobs import wakeups

        while not _is_orphaned():
            try:
                spends_retry = self._stopped_for is None or not self._stopped_for.in_order
                ending.finish(
                    self._database,
                    self._placement,
                    report,
                    spends_retry=spends_retry,
                    still_used=still_used,
                    ranks_ended_at=ranks_ended_at,
                )
                wakeups.flush(timeout_s=2)
                return
            except StaleAttemptError as error:
                log.warning("ended_by_others", reason=str(error))
                return
            except SQLAlchemyError as error:
                log.warning("database_away", error=str(error).splitlines()[0])
                time.sleep(1)


def main(placement_id: int) -> None:
    """Own one placement from start to end; leave at once if it has an owner or has ended."""
    stop = StopRequest()  # first: a stop that comes now must not kill what is about to hold devices
    configure_logs()
    adopt_orphans()
    structlog.contextvars.bind_contextvars(placement_id=placement_id)
    database = get_database()
    try:
        claimed = _claim(database, placement_id, stop)
    except StaleAttemptError as error:
        log.info("not_ours", reason=str(error))
        return
    if claimed is None:
        return
    placement, lease_until = claimed
    structlog.contextvars.bind_contextvars(job_id=placement.job_id, attempt=placement.attempt)
    Supervisor(database, placement, stop, lease_until=lease_until).run()


def _claim(database: Database, placement_id: int, stop: StopRequest) -> tuple[Placement, float] | None:
    """Claim a placement, while the database is away for as long as that takes: nothing runs yet, nothing is at stake.

    Returns it, and the time on `clock` until which its devices are ours for certain; None if a stop came first. Raises
    StaleAttemptError if it has another owner or has ended, which it may have meanwhile, and SQLAlchemy's error where a
    database that answers is of no use for a whole lease.
    """
    began_at, lease_s = clock(), get_settings().lease_s
    while True:
        sent_at = clock()  # of this try: the lease counts from a moment on the database's side after it
        try:
            with database.session_scope() as session:
                return leases.claim(session, placement_id, identity(os.getpid())), sent_at + lease_s
        except SQLAlchemyError as error:
            if stop.is_made or _is_orphaned():
                return None
            if sent_at > began_at + lease_s and (not isinstance(error, AWAY) or missing_schema.is_missing(database)):
                raise
            log.warning("database_away", error=str(error).splitlines()[0])
            time.sleep(POLL_S)


def _is_orphaned() -> bool:
    """Whether the embedded service that this is a part of has gone."""
    owner = get_settings().owner
    return owner is not None and not is_alive(owner)


if __name__ == "__main__":
    main(int(sys.argv[1]))
