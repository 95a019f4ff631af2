"""What an attempt may begin with: the checkpoints of its own job, or that of another one."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from jobs.store import nodes
from jobs.store.nodes import OutOfReach
from jobs.store.reports import resumable
from jobs.tables import Checkpoint, Job, Placement


@dataclass(frozen=True)
class Candidates:
    """The checkpoints that a job's next attempt may begin with."""

    own: Sequence[Checkpoint]
    """Those that the job itself has saved, the furthest first; of a run on several hosts, those that all can read."""
    out_of_reach: Sequence[OutOfReach]
    """Those that it has saved too, and that some host of a run on several cannot read, the furthest first."""
    started_from: Checkpoint | None
    """That of another job, which it starts from while it has none of its own; also one whose file was removed."""

    @property
    def awaited(self) -> Sequence[str]:
        """The hosts that may say yet that they can read a further one than all can."""
        known_step = self.own[0].step if self.own else -1
        further = (each for each in self.out_of_reach if each.checkpoint.step > known_step)
        return next((each.silent for each in further if each.silent), ())


def candidates(session: Session, placement: Placement, job: Job) -> Candidates:
    """Return what the attempt of a placement may begin with."""
    origin = None if job.parent_checkpoint_id is None else session.get(Checkpoint, job.parent_checkpoint_id)
    own, out_of_reach = nodes.by_reach(session, placement, resumable(session, job.id))
    return Candidates(own, out_of_reach, origin)


def best_beside(session: Session, checkpoint: Checkpoint) -> Checkpoint | None:
    """Return the best checkpoint of the run that saved `checkpoint`, if that is another one and still there."""
    beside = (Checkpoint.job_id == checkpoint.job_id, Checkpoint.attempt == checkpoint.attempt)
    best = select(Checkpoint).where(*beside, Checkpoint.best, Checkpoint.removed_at.is_(None))
    return session.scalars(best.where(Checkpoint.id != checkpoint.id)).first()
