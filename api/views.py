"""Jobs and attempts as the API shows them: with their position in the line, with what each was given."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from api.models import Attempt, Attempts, Job, PlacedDevice, Placement
from jobs import tables
from jobs.states import State
from jobs.store import attempts, jobs, lines


def with_positions(session: Session, shown: Sequence[Job]) -> list[Job]:
    """Return jobs with the position of each that waits in the line."""
    positions = lines.positions(session, [job.id for job in shown if job.state is State.QUEUED])
    return [job.model_copy(update={"position": positions.get(job.id)}) for job in shown]


def edited(job: Job | tables.Job) -> dict[str, object]:
    """Return what users edit of a job: what its ETag's edition is made of."""
    return {"priority": job.priority, "labels": job.labels}


def view_attempts(session: Session, job_id: int) -> Attempts:
    """Return a job's attempts with what each was given. Raises NotFoundError."""
    jobs.get(session, job_id)
    placed: dict[int, list[Placement]] = {}
    for row in attempts.select_placements(session, job_id):
        placed.setdefault(row.attempt, []).append(_view_placement(session, row))
    return Attempts(
        items=[
            Attempt.model_validate(
                {
                    "number": row.number,
                    "outcome": row.outcome,
                    "failure": row.failure,
                    "stop_message": row.stop_message,
                    "world_size": row.world_size,
                    "resumed_step": row.resumed_step,
                    "resume_checkpoint_id": row.resume_checkpoint_id,
                    "created_at": row.created_at,
                    "started_at": row.started_at,
                    "ended_at": row.ended_at,
                    "placements": placed.get(row.number, []),
                }
            )
            for row in attempts.select_attempts(session, job_id)
        ]
    )


def _view_placement(session: Session, row: tables.Placement) -> Placement:
    return Placement(
        node_rank=row.node_rank,
        host=row.host_name,
        devices=[
            # By the name it was given under: the worker may number its devices otherwise by now.
            PlacedDevice.model_validate(device).model_copy(update={"name": name})
            for name, device in zip(row.devices, attempts.device_rows(session, row), strict=True)
        ],
        run_dir=row.run_dir,
        created_at=row.created_at,
        claimed_at=row.claimed_at,
        ended_at=row.ended_at,
    )
