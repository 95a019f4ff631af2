"""The end of a placement: what its files say happened, and the transaction that ends its attempt."""

from datetime import UTC, datetime
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
from worker.shipping import Shipper

log = structlog.get_logger()


def finish(database: Database, placement: Placement, report: ErrorReport, *, spends_retry: bool = True) -> State:
    """Ship what is left of a placement and end its attempt; return the job's new state.

    Call it only when no process of the run is left. `report` tells why the run ended, should its own files not say.
    Raises StaleAttemptError if somebody else has ended the attempt.
    """
    with database.session_scope(read_only=True) as session:
        current = attempts.get_placement(session, placement.id)  # how far its files are shipped by now
    Shipper(database, current).ship(final=True)
    run_dir = RunDir(Path(placement.run_dir))
    completed = _is_completed(run_dir)
    failure = None if completed else _reported(run_dir) or report
    with database.session_scope() as session:
        intent = Intent(jobs.get(session, placement.job_id).intent)
        outcome = conclude(completed=completed, cause=failure.cause if failure else Cause.LOST, intent=intent)
        state = attempts.end(
            session,
            placement.job_id,
            placement.attempt,
            outcome,
            failure=failure.model_dump(mode="json") if failure else None,
            spends_retry=spends_retry,
        )
    log.info("attempt_ended", job_id=placement.job_id, attempt=placement.attempt, outcome=outcome, state=state)
    # Celery, late: a supervisor sends this one message at its end, and somebody waits for its start.
    from jobs import wakeups

    wakeups.wake_planner(placement.job_id)
    return state


def lost(message: str) -> ErrorReport:
    """The report of a run whose supervisor or ranks went away without a word."""
    return ErrorReport(cause=Cause.LOST, message=message, time=datetime.now(UTC))


def _reported(run_dir: RunDir) -> ErrorReport | None:
    """What the run says of its failure; a file that cannot be read must not keep the attempt from ending."""
    try:
        return run_dir.read_error()
    except (OSError, ValueError) as error:
        log.warning("error_file_unreadable", run_dir=str(run_dir.path), error=str(error))
        return None


def _is_completed(run_dir: RunDir) -> bool:
    try:
        return run_dir.completed() is not None
    except JournalError:
        return False
