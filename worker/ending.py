"""The end of a placement: what its files say happened, and the transaction that ends it."""

from pathlib import Path

import structlog
from pydantic import ValidationError

from jobs.database import Database
from jobs.store import attempts, endings
from jobs.store.endings import Conclusion
from jobs.tables import Placement
from trainer.error_report import ErrorReport
from trainer.errors import Cause, JournalError
from trainer.log_tail import log_tail
from trainer.run_dir import RunDir
from worker import failure_reports, resumption
from worker.clock import clock
from worker.fitness import write_error
from worker.shipping import Shipper

log = structlog.get_logger()


def finish(
    database: Database,
    placement: Placement,
    report: ErrorReport,
    *,
    spends_retry: bool = True,
    still_used: str | None = None,
    ranks_ended_at: float | None = None,
) -> Conclusion | None:
    """Ship what is left of a placement and end it; return what became of its attempt, or None while others are open.

    Call it only when no process of the run is left, or with `still_used` saying that one cannot be killed. `report`
    tells why the run ended, should its own files not say; `ranks_ended_at` is when its ranks had ended, on `clock`, if
    not only now. Raises StaleAttemptError if somebody else has ended it.
    """
    with database.session_scope(read_only=True) as session:
        current = attempts.get_placement(session, placement.id)  # how far its files are shipped by now
    run_dir = RunDir(Path(placement.run_dir))
    resumption.clear(run_dir.path)
    try:
        Shipper(database, current).ship(final=True)
        completed = _is_completed(run_dir) if placement.node_rank == 0 else _has_done_its_part(run_dir)
        failure = None if completed else _failure(report, placement, run_dir)
    except OSError as error:
        # Whatever it says cannot be read, now or ever: a placement that never ends would hold its devices for good.
        log.error("run_dir_unreadable", run_dir=placement.run_dir, error=str(error))
        completed, failure = False, failure_reports.lost(f"its run directory cannot be read: {error}")
    with database.session_scope() as session:
        conclusion = endings.end_placement(
            session,
            placement,
            completed=completed,
            failure=failure.model_dump(mode="json") if failure else None,
            spends_retry=spends_retry,
            still_used=still_used,
            idle_s=0.0 if ranks_ended_at is None else clock() - ranks_ended_at,
        )
    whose = {"job_id": placement.job_id, "attempt": placement.attempt, "node_rank": placement.node_rank}
    log.info("placement_ended", **whose, completed=completed)
    if conclusion is not None:
        log.info("attempt_ended", **whose, outcome=conclusion.outcome, state=conclusion.state)
    # Celery, late: a supervisor sends this one message at its end, and somebody waits for its start.
    from jobs import wakeups

    wakeups.wake_planner(placement.job_id)
    return conclusion


def _failure(report: ErrorReport, placement: Placement, run_dir: RunDir) -> ErrorReport:
    """Why a run without a completion record has ended, by its own files and by `report`."""
    failure = _why(_reported(run_dir), report)
    # What a rank raised is told, with the name of its class, wherever it could be written.
    if failure.cause is Cause.EXCEPTION and failure.exception is None:
        error = write_error(run_dir.path)
        if error is not None:
            failure = failure_reports.unwritable(error)
    return _with_log_tail(failure, placement, run_dir)


def _why(reported: ErrorReport | None, report: ErrorReport) -> ErrorReport:
    """What the run itself says, unless all that it knows is that it was told to stop, and `report` says why."""
    if reported is None or (reported.cause is Cause.INTERRUPTED and report.cause is not Cause.INTERRUPTED):
        return report
    return reported


def _with_log_tail(failure: ErrorReport, placement: Placement, run_dir: RunDir) -> ErrorReport:
    """The failure with the last lines of what its rank printed, or else the launcher, where the trainer added none."""
    if failure.log_tail is not None:
        return failure
    local_rank = None if failure.rank is None else failure.rank - placement.node_rank * len(placement.devices)
    tail = None if local_rank is None else log_tail(run_dir.log(local_rank))
    return failure.model_copy(update={"log_tail": tail or log_tail(run_dir.launcher_log)})


def _reported(run_dir: RunDir) -> ErrorReport | None:
    """What the run says of its failure; a damaged file must not keep the placement from ending."""
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


def _has_done_its_part(run_dir: RunDir) -> bool:
    """Whether all ranks of a node without rank 0 have passed the barrier behind all work, as the launcher concludes."""
    try:
        config = run_dir.read_config()
    except (FileNotFoundError, ValidationError):
        return False  # it was never started
    each = [run_dir.read_progress(local_rank) for local_rank in range(config.local_world_size)]
    return all(reached is not None and reached.phase == "finished" for reached in each)
