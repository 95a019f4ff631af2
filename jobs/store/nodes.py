"""The nodes of an attempt on several hosts: where their ranks meet, and what they all continue from."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from jobs.database import now
from jobs.store.attempts import ended_error, fence
from jobs.store.reach import has_answered
from jobs.store.transitions import changed
from jobs.tables import Attempt, Checkpoint, Host, Placement


@dataclass(frozen=True)
class MeetingPoint:
    """What each node has to know of the others."""

    nnodes: int = 1
    master_addr: str = "127.0.0.1"
    """Where node 0's host is reached."""
    master_port: int = 0
    """Port of that host which this attempt has to itself; 0 for a run on one node, which takes any."""


@dataclass(frozen=True)
class Decision:
    """What node 0 has decided to continue from."""

    checkpoint: Checkpoint | None
    """None begins anew."""


def meeting_point(session: Session, placement: Placement) -> MeetingPoint:
    """Return where the ranks of a placement's attempt meet."""
    mine = (Placement.job_id == placement.job_id, Placement.attempt == placement.attempt)
    nnodes = session.scalars(select(func.count()).select_from(Placement).where(*mine)).one()
    if nnodes == 1:
        return MeetingPoint()
    query = select(Host.name, Host.address, Placement.master_port).join(Placement, Placement.host_name == Host.name)
    name, address, port = session.execute(query.where(*mine, Placement.node_rank == 0)).one()
    assert port is not None, "an attempt on several nodes has a port"
    # Of a host whose worker is of an earlier version no address is known; its name may well be one.
    return MeetingPoint(nnodes, address or name, port)


@dataclass(frozen=True)
class OutOfReach:
    """A checkpoint that not every node of a run can read."""

    checkpoint: Checkpoint
    cannot: Sequence[str]
    """The hosts of the run that cannot, by name."""
    silent: Sequence[str] = ()
    """Those of them that may be able to: they have not said yet."""


def by_reach(
    session: Session, placement: Placement, checkpoints: Sequence[Checkpoint]
) -> tuple[Sequence[Checkpoint], Sequence[OutOfReach]]:
    """Return those of `checkpoints` that the host of each node can read, from where they are or from their copy, and
    the others.

    All of them are of the first where there is one node: it sees for itself.
    """
    mine = (Placement.job_id == placement.job_id, Placement.attempt == placement.attempt)
    columns = (Host.name, Host.storages, Host.looked_at)
    query = select(*columns).join(Placement, Placement.host_name == Host.name).where(*mine)
    hosts = session.execute(query.order_by(Host.name)).all()
    if len(hosts) == 1:
        return checkpoints, ()
    at = now(session)
    within, beyond = [], []
    for each in checkpoints:
        cannot = [host for host in hosts if not {each.storage, each.copy_storage} & set(host.storages)]
        if not cannot:
            within.append(each)
            continue
        silent = [host.name for host in cannot if not has_answered(host.looked_at, each, at)]
        beyond.append(OutOfReach(each, [host.name for host in cannot], silent))
    return within, beyond


def decide_resume(session: Session, placement: Placement, checkpoint_id: int | None) -> None:
    """Tell the other nodes what the attempt continues from. For node 0 only; deciding the same again changes nothing.

    Raises StaleAttemptError once the placement has ended.
    """
    fence(session, placement)
    open_ = (Attempt.job_id == placement.job_id, Attempt.number == placement.attempt)
    statement = update(Attempt).where(*open_, Attempt.resume_decided_at.is_(None))
    changed(session, statement.values(resume_decided_at=now(session), resume_checkpoint_id=checkpoint_id))


def resume_decision(session: Session, placement: Placement) -> Decision | None:
    """Return what node 0 has decided, or None while it has not. Raises StaleAttemptError once the attempt has ended."""
    mine = (Attempt.job_id == placement.job_id, Attempt.number == placement.attempt, Attempt.ended_at.is_(None))
    query = select(Attempt.resume_decided_at, Attempt.resume_checkpoint_id).where(*mine)
    found = session.execute(query).one_or_none()
    if found is None:
        raise ended_error(placement)
    decided_at, checkpoint_id = found
    if decided_at is None:
        return None
    return Decision(None if checkpoint_id is None else session.get_one(Checkpoint, checkpoint_id))
