"""The jobs of the past, as a stream that a simulation can submit again."""

from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from jobs.planner.request import parse_request
from jobs.simulation.stream import StreamJob
from jobs.spec import stored_request
from jobs.states import State
from jobs.tables import Attempt, Job

ENDED = [state for state in State if state.is_terminal]


def read(session: Session) -> list[StreamJob]:
    """Return every job that ran and has ended, in order of submission; its attempts count as one run.

    A job whose spec this version cannot read is left out: nobody could plan it either.
    """
    ran_s = _ran_s(session)
    found: list[StreamJob] = []
    past = session.scalars(select(Job).where(Job.state.in_(ENDED)).order_by(Job.created_at, Job.id)).all()
    for job in past:
        if ran_s.get(job.id, 0) <= 0:
            continue  # it was cancelled while it waited
        try:
            request = parse_request(job.request) if job.request else stored_request(job.spec)
        except ValueError:
            continue
        found.append(
            StreamJob(
                submitted_s=(job.created_at - past[0].created_at).total_seconds(),
                runs_s=ran_s[job.id],
                request=request,
                priority=job.priority,
                user=job.user,
                labels=job.labels,
                foretold_s=_foretold_s(job.progress, ran_s[job.id]),
            )
        )
    return found


def _ran_s(session: Session) -> dict[int, float]:
    """For how long each job had its devices, over all attempts."""
    ran_s: dict[int, float] = {}
    attempts = select(Attempt.job_id, Attempt.created_at, Attempt.ended_at).where(Attempt.ended_at.is_not(None))
    for job_id, began, ended in session.execute(attempts):
        assert ended is not None, "the query says so"
        ran_s[job_id] = ran_s.get(job_id, 0.0) + (ended - began).total_seconds()
    return ran_s


def _foretold_s(progress: dict[str, Any] | None, ran_s: float) -> float | None:
    """How long the whole would have taken at the pace that it ran; None where it reported none."""
    step, total = (progress or {}).get("step"), (progress or {}).get("total_steps")
    return ran_s * max(total / step, 1) if step and total else None
