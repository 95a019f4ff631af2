"""The supervisor: the one process that owns a placement, from its claim to its proven end.

    python -m worker.supervisor PLACEMENT_ID

It runs in a session of its own and outlives its worker. When it dies, its ranks die with it (parent-death signal),
and its host's worker ends the placement. When it is cut off from the database, it ends its ranks before its lease
runs out, so that whoever gets the devices next gets them free.
"""

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from hashlib import file_digest
from pathlib import Path

import structlog
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from jobs.database import Database, get_database
from jobs.errors import StaleAttemptError
from jobs.logs import configure_logs
from jobs.settings import Settings, get_settings
from jobs.spec import JobSpec
from jobs.states import Intent
from jobs.store import attempts, jobs, reports
from jobs.store.hosts import DeviceInfo
from jobs.tables import Checkpoint, DeviceRow, Job, Placement
from trainer.error_report import ErrorReport
from trainer.errors import Cause
from trainer.parent_death import PARENT_PID_VARIABLE
from trainer.process_identity import identity, is_alive
from trainer.run_dir import EXIT_INTERRUPTED, RUN_DIR_VARIABLE, RunConfig, RunDir
from worker import ending, trainer_view
from worker.link import Link, clock, patiently
from worker.processes import end_run

WATCH_S = 0.1
"""Seconds between two looks at the trainer."""

log = structlog.get_logger()


class Supervisor:
    """Runs one claimed placement."""

    def __init__(self, database: Database, placement: Placement, *, lease_until: float) -> None:
        self._settings: Settings = get_settings()
        self._database = database
        self._placement = placement
        self._run_dir = RunDir(Path(placement.run_dir))
        self._link = Link(database, placement, lease_until=lease_until)
        self._asked_to_stop = False
        self._stopped_on_request = False
        """The ranks were told to stop by the user, or by whoever shuts this host down: no fault, so no retry spent."""
        signal.signal(signal.SIGTERM, self._on_sigterm)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def run(self) -> None:
        """Train, prove the end, and tell the database."""
        self._link.start()
        try:
            report = self._watch(self._start_trainer())
        except OSError as error:
            report = _start_report(error)
        while not end_run(self._placement.run_dir):
            log.error("devices_still_held", devices=self._placement.devices)
        if self._is_orphaned():
            return
        self._link.stop()
        if not self._link.fenced:
            self._finish(report)

    def _start_trainer(self) -> "subprocess.Popen[bytes]":
        """Write config.json and start the trainer, from this thread: the ranks' parent-death signal watches it."""
        config, environment = self._prepare()
        self._run_dir.create(config)
        run_dir = self._placement.run_dir
        environment |= {RUN_DIR_VARIABLE: run_dir, PARENT_PID_VARIABLE: str(os.getpid())}
        with (self._run_dir.path / "trainer.log").open("ab") as output:
            return subprocess.Popen(
                [sys.executable, "-m", "trainer", run_dir],
                env=os.environ | environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def _prepare(self) -> tuple[RunConfig, dict[str, str]]:
        def read(session: Session) -> tuple[Job, Sequence[DeviceRow], Sequence[Checkpoint]]:
            job = jobs.get(session, self._placement.job_id)
            return job, attempts.device_rows(session, self._placement), reports.resumable(session, job.id)

        job, rows, checkpoints = patiently(self._database, read, until=self._link.lease_until)
        devices = [DeviceInfo(row.name, row.kind, row.uuid, row.model, row.memory_bytes, row.simulated) for row in rows]
        config = RunConfig(
            train=JobSpec.model_validate(job.spec).train,
            devices=trainer_view.device_names(devices),
            simulated=any(device.simulated for device in devices),
            resume=self._first_intact(checkpoints),
            job_id=job.id,
            attempt=self._placement.attempt,
        )
        return config, trainer_view.environment(devices)

    def _first_intact(self, checkpoints: Sequence[Checkpoint]) -> Path | None:
        """The furthest checkpoint of earlier attempts that is here and whole, by its hash."""
        for checkpoint in checkpoints:
            path = Path(checkpoint.path)
            try:
                with path.open("rb") as file:
                    if file_digest(file, "sha256").hexdigest() == checkpoint.sha256:
                        return path
                problem = "its content does not match its hash"
            except OSError as error:
                problem = f"it cannot be read here: {error.strerror}"
            message = f"checkpoint {path} of step {checkpoint.step} is passed over: {problem}"
            log.warning("checkpoint_passed_over", message=message)
            note = partial(
                attempts.note, placement=self._placement, kind="log", detail={"level": "warning", "message": message}
            )
            patiently(self._database, note, until=self._link.lease_until)
        return None

    def _watch(self, trainer: "subprocess.Popen[bytes]") -> ErrorReport:
        """Wait for the trainer to end, and end it when it must; return why it stopped, should its files not say."""
        grace = min(self._settings.checkpoint_grace_s, self._settings.lease_s / 4)
        margin = self._settings.lease_s / 10 + grace
        kill_at: float | None = None
        reason: ErrorReport | None = None
        while trainer.poll() is None:
            stop_for = self._must_stop(margin)
            if self._link.fenced or self._is_orphaned():
                trainer.kill()
                return ending.lost("its attempt was ended by others")
            if kill_at is None and stop_for is not None:
                reason, seconds = stop_for
                self._stopped_on_request = reason.cause is Cause.INTERRUPTED
                trainer.terminate()
                kill_at = clock() + min(seconds, grace)
            if kill_at is not None and clock() > kill_at:
                trainer.kill()
            time.sleep(WATCH_S)
        return reason or _exit_report(trainer.returncode)

    def _must_stop(self, margin: float) -> tuple[ErrorReport, float] | None:
        """Why the ranks must stop now, and for how many seconds they may save; None while they may go on."""
        settings = self._settings
        if clock() > self._link.lease_until - margin:
            return ending.lost("its supervisor was cut off from the database"), settings.checkpoint_grace_s
        if self._link.intent is Intent.CANCEL:
            return _interrupted("cancelled"), settings.stop_grace_s
        if self._link.intent is Intent.PAUSE:
            return _interrupted("paused"), settings.checkpoint_grace_s
        if self._asked_to_stop:
            return _interrupted("its host is going down"), settings.checkpoint_grace_s
        return None

    def _is_orphaned(self) -> bool:
        """Whether the embedded service that this is a part of has gone."""
        owner = self._settings.owner
        return owner is not None and not is_alive(owner)

    def _finish(self, report: ErrorReport) -> None:
        """End the attempt in the database, for as long as that takes: the ranks are dead, so nothing is at stake."""
        while not self._is_orphaned():
            try:
                ending.finish(self._database, self._placement, report, spends_retry=not self._stopped_on_request)
                return
            except StaleAttemptError as error:
                log.warning("ended_by_others", reason=str(error))
                return
            except SQLAlchemyError as error:
                log.warning("database_away", error=str(error).splitlines()[0])
                time.sleep(1)

    def _on_sigterm(self, _number: int, _frame: object) -> None:
        self._asked_to_stop = True


def _start_report(error: OSError) -> ErrorReport:
    """What to say of a trainer that could not even be started."""
    cause = Cause.DISK_FULL if error.errno == errno.ENOSPC else Cause.EXCEPTION
    return ErrorReport(cause=cause, message=f"the run could not be started: {error}", time=datetime.now(UTC))


def _exit_report(returncode: int) -> ErrorReport:
    """What the trainer's exit status alone tells."""
    if returncode == EXIT_INTERRUPTED:
        return _interrupted("the run was interrupted")
    if returncode < 0:
        name = signal.Signals(-returncode).name
        return ErrorReport(
            cause=Cause.KILLED_BY_SIGNAL,
            message=f"the trainer was ended by {name}",
            signal=name,
            time=datetime.now(UTC),
        )
    return ErrorReport(
        cause=Cause.EXCEPTION,
        message=f"the trainer exited with status {returncode} and without a completion record; see trainer.log",
        exit_code=returncode,
        time=datetime.now(UTC),
    )


def _interrupted(message: str) -> ErrorReport:
    return ErrorReport(cause=Cause.INTERRUPTED, message=message, time=datetime.now(UTC))


def main(placement_id: int) -> None:
    """Own one placement from start to end; leave at once if it has an owner or has ended."""
    configure_logs()
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
    Supervisor(database, placement, lease_until=sent_at + lease_s).run()


if __name__ == "__main__":
    main(int(sys.argv[1]))
