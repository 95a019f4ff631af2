"""The supervisor: the one process that owns a placement, from its claim to its proven end.

    python -m worker.supervisor PLACEMENT_ID

It runs in a session of its own and outlives its worker. When it dies, its ranks die with it (parent-death signal),
and its host's worker ends the placement. When it is cut off from the database, it ends its ranks before its lease
runs out, so that whoever gets the devices next gets them free.
"""

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import structlog
from pydantic import ValidationError
from sqlalchemy.exc import SQLAlchemyError

from jobs.database import Database, get_database
from jobs.errors import StaleAttemptError
from jobs.logs import configure_logs
from jobs.settings import get_settings
from jobs.states import Intent
from jobs.store import attempts
from jobs.tables import Placement
from trainer.error_report import ErrorReport
from trainer.errors import Cause
from trainer.parent_death import PARENT_PID_VARIABLE
from trainer.process_identity import identity, is_alive
from trainer.run_dir import GRACE_VARIABLE, RUN_DIR_VARIABLE, RunDir
from worker import ending, failure_reports
from worker.clock import clock
from worker.link import Link, patiently
from worker.preparation import Prepared, prepare
from worker.processes import adopt_orphans, end_run

WATCH_S = 0.1
"""Seconds between two looks at the trainer."""
SECRETS = ("RANKZERO_DATABASE_URL", "RANKZERO_BROKER_URL")
"""Variables that the trainer, which runs the user's code, has no use for."""

log = structlog.get_logger()


class StopRequest:
    """Whether whoever shuts this host down has asked this process to stop."""

    def __init__(self) -> None:
        self.is_made = False
        signal.signal(signal.SIGTERM, self._make)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def _make(self, _number: int, _frame: object) -> None:
        self.is_made = True


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
        self._stopped_on_request = False
        """The ranks were told to stop by the user, or by whoever shuts this host down: no fault, so no retry spent."""

    def run(self) -> None:
        """Train, prove the end, and tell the database."""
        self._link.start()
        try:
            report = self._train()
        except OSError as error:
            report = failure_reports.not_started(error)
        except ValidationError as error:
            report = failure_reports.spec_unreadable(error)
        while not end_run(self._placement.run_dir, with_descendants=True):
            log.error("devices_still_held", devices=self._placement.devices)
        if self._is_orphaned():
            return
        self._link.stop()
        if not self._link.fenced:
            self._finish(report)

    def _train(self) -> ErrorReport:
        """Run the trainer to its end; return why it stopped, should its files not say."""
        prepared = prepare(
            self._database,
            self._placement,
            until=self._link.lease_until,
            is_stopped=lambda: self._link.fenced or self._must_stop() is not None,
        )
        if stop_for := self._must_stop():
            return self._note_stop(stop_for[0])
        self._run_dir.create(prepared.config)
        return self._watch(self._start_trainer(prepared))

    def _start_trainer(self, prepared: Prepared) -> "subprocess.Popen[bytes]":
        """Start the trainer, from this thread: the ranks' parent-death signal watches it."""
        run_dir = self._placement.run_dir
        inherited = {name: value for name, value in os.environ.items() if name not in SECRETS}
        own = {
            RUN_DIR_VARIABLE: run_dir,
            PARENT_PID_VARIABLE: str(os.getpid()),
            GRACE_VARIABLE: str(self._settings.checkpoint_grace_s),
        }
        with (self._run_dir.path / "trainer.log").open("ab") as output:
            output.write("".join(f"{line}\n" for line in prepared.devices).encode())
            output.flush()  # before the trainer's first word
            return subprocess.Popen(
                [sys.executable, "-m", "trainer", run_dir],
                env=inherited | prepared.environment | own,
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
            if self._link.fenced or self._is_orphaned():
                trainer.kill()
                return failure_reports.lost("its attempt was ended by others")
            if (stop_for := self._must_stop()) is not None:
                if reason is None:
                    reason = self._note_stop(stop_for[0])
                    trainer.terminate()
                    kill_at = clock() + stop_for[1]
                elif stop_for[0].message != reason.message:  # such as a cancel while a pause is being saved
                    reason = self._note_stop(stop_for[0])
                    kill_at = min(kill_at, clock() + stop_for[1])
            if clock() > kill_at:
                trainer.kill()
            time.sleep(WATCH_S)
        return reason or failure_reports.exited(trainer.returncode)

    def _must_stop(self) -> tuple[ErrorReport, float] | None:
        """Why the ranks must stop now, and for how many seconds they may save; None while they may go on."""
        settings = self._settings
        if clock() > self._link.lease_until - settings.lease_s / 10 - self._cut_off_grace_s:
            return failure_reports.lost("its supervisor was cut off from the database"), self._cut_off_grace_s
        if self._link.intent is Intent.CANCEL:
            return failure_reports.interrupted("cancelled"), settings.stop_grace_s
        if self._link.intent is Intent.PAUSE:
            return failure_reports.interrupted("paused"), settings.checkpoint_grace_s
        if self._stop.is_made:
            return failure_reports.interrupted("its host is going down"), settings.checkpoint_grace_s
        return None

    def _note_stop(self, reason: ErrorReport) -> ErrorReport:
        self._stopped_on_request = reason.cause is Cause.INTERRUPTED
        return reason

    def _is_orphaned(self) -> bool:
        """Whether the embedded service that this is a part of has gone."""
        owner = self._settings.owner
        return owner is not None and not is_alive(owner)

    def _finish(self, report: ErrorReport) -> None:
        """End the attempt in the database, for as long as that takes: the ranks are dead, so nothing is at stake."""
        # Celery, late: this sends one message at its end, and somebody waits for its start.
        from jobs import wakeups

        while not self._is_orphaned():
            try:
                ending.finish(self._database, self._placement, report, spends_retry=not self._stopped_on_request)
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
    sent_at = clock()
    lease_s = get_settings().lease_s
    claim = partial(attempts.claim, placement_id=placement_id, supervisor=identity(os.getpid()))
    try:
        placement = patiently(database, claim, until=sent_at + lease_s)
    except StaleAttemptError as error:
        log.info("not_ours", reason=str(error))
        return
    structlog.contextvars.bind_contextvars(job_id=placement.job_id, attempt=placement.attempt)
    Supervisor(database, placement, stop, lease_until=sent_at + lease_s).run()


if __name__ == "__main__":
    main(int(sys.argv[1]))
