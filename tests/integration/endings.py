"""How a placement ends in tests that move jobs through the store: what its supervisor would say, by the outcome."""

from typing import Any

from jobs.database import Database
from jobs.states import Intent, Outcome
from jobs.store import endings, jobs
from jobs.store.endings import Conclusion
from jobs.tables import Placement

REASONS: dict[Outcome, dict[str, Any]] = {
    Outcome.FAILED: {"cause": "exception", "message": "ValueError: no such thing", "rank": 0},
    Outcome.CANCELLED: {"cause": "interrupted", "message": "cancelled", "rank": None},
    Outcome.PAUSED: {"cause": "interrupted", "message": "paused", "rank": None},
    Outcome.PREEMPTED: {"cause": "interrupted", "message": "preempted by job 2", "rank": None},
    Outcome.LOST: {"cause": "lost", "message": "its supervisor died", "rank": None},
}
"""The error reports that come to these outcomes."""


def end_as(
    database: Database, placement: Placement, outcome: Outcome, *, failure: dict[str, Any] | None = None
) -> Conclusion | None:
    """End a placement as its supervisor does where its attempt is to have this outcome; a cancel is asked for first."""
    if outcome is Outcome.CANCELLED:
        with database.session_scope() as session:
            jobs.set_intent(session, placement.job_id, Intent.CANCEL)
    with database.session_scope() as session:
        return endings.end_placement(
            session,
            placement,
            completed=outcome is Outcome.SUCCEEDED,
            failure=failure or REASONS.get(outcome),
            spends_retry=outcome in (Outcome.FAILED, Outcome.LOST),
        )
