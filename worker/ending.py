"""The end of a placement: what its files say happened, and the transaction that ends its attempt."""

from pathlib import Path

import structlog

from jobs.database import Database
from jobs.outcomes import conclude
from jobs.states import Intent, State
from jobs.store import attempts, jobs
from jobs.tables import Placement
from trainer.error_report import ErrorReport
from trainer.errors import Cause, JournalError
from trainer.run_dir import RunDir
from worker import failure_reports
from worker.shipping import Shipper

log = structlog.get_logger()


def finish(database: Database, placement: Placement, report: ErrorReport, *, spends_retry: bool = True) -> State:
    """Ship what is left of a placement and end its attempt; return the job's new state.

    Call it only when no process of the run is left. `report` tells why the run ended, should its own files not say.
    Raises StaleAttemptError if somebody else has ended the attempt.
    """
    with database.session_scope(read_only=True) as session:
        current = attempts.get_placement(session, placement.id)  # how far its files are shipped by now
    run_dir = RunDir(Path(placement.run_dir))
    try:
        Shipper(database, current).ship(final=True)
        completed = _is_completed(run_dir)
        failure = None if completed else _why(_reported(run_dir), report)
    except OSError as error:
        # Whatever it says cannot be read, now or ever: an attempt that never ends would hold its devices for good.
        log.error("run_dir_unreadable", run_dir=placement.run_dir, error=str(error))
        completed, failure = False, failure_reports.lost(f"its run directory cannot be read: {error}")
    with database.session_scope() as session:
        intent = Intent(jobs.get(session, placement.job_id).intent)
        outcome = conclude(completed=completed, cause=failure.cause if failure else Cause.LOST, intent=intent)
        state = attempts.end(
            session,
            job_id=placement.job_id,
            attempt=placement.attempt,
            outcome=outcome,
            failure=failure.model_dump(mode="json") if failure else None,
            spends_retry=spends_retry,
        )
    log.info("attempt_ended", job_id=placement.job_id, attempt=placement.attempt, outcome=outcome, state=state)
    # Celery, late: a supervisor sends this one message at its end, and somebody waits for its start.
    from jobs import wakeups

    wakeups.wake_planner(placement.job_id)
    return state


def _why(reported: ErrorReport | None, report: ErrorReport) -> ErrorReport:
    """What the run itself says, unless all that it knows is that it was told to stop, and `report` says why."""
    if reported is None or (reported.cause is Cause.INTERRUPTED and report.cause is not Cause.INTERRUPTED):
        return report
    return reported


def _reported(run_dir: RunDir) -> ErrorReport | None:
    """What the run says of its failure; a damaged file must not keep the attempt from ending."""
    try:
        return run_dir.read_error()
    except ValueError as error:
        log.warning("error_file_damaged", run_dir=str(run_dir.path), error=str(error))
        return None


def _is_completed(run_dir: RunDir) -> bool:
    try:
        return run_dir.completed() is not None
    except JournalError:
        return False
