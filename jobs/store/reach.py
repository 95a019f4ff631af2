"""Reach: which hosts can read the checkpoint that a waiting job will continue from."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from jobs.planner import view as planner
from jobs.planner.matching import suitable_hosts
from jobs.settings import get_settings
from jobs.spec import JobSpec
from jobs.tables import Checkpoint, Host

ANSWER = timedelta(seconds=60)
"""How long a host that is in contact is waited for, until it says whether it can read a new checkpoint: two of its
looks. One whose file system hangs keeps no job any longer."""


@dataclass(frozen=True, slots=True)
class Saved:
    """Where a checkpoint is."""

    id: int
    job_id: int
    step: int
    host_name: str
    storage: str | None
    copy_storage: str | None
    placed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Reach:
    """From where a job continues, and where that can be read."""

    step: int
    """0 where it begins anew."""
    hosts: frozenset[str] | None
    """None where any host will do."""
    note: str | None
    """That in words."""


def has_answered(looked_at: datetime | None, checkpoint: Saved | Checkpoint, at: datetime) -> bool:
    """Whether a host that last looked for storages then has said by now, `at`, if it can read a checkpoint.

    What it has not looked for since may well be in its reach.
    """
    if checkpoint.storage is None and checkpoint.copy_storage is None:
        return True  # there is nothing to look for
    placed_at = checkpoint.placed_at
    return placed_at is None or (looked_at is not None and looked_at >= placed_at) or at - placed_at > ANSWER


class Readers:
    """Which host reads which storage."""

    def __init__(self, hosts: Sequence[Host], in_contact: Collection[str], at: datetime) -> None:
        """`in_contact` are the names of those hosts whose worker is heard of at the database's time `at`, also while
        they get no new jobs."""
        self._by_storage: dict[str, set[str]] = {}
        self._at = at
        self._looked_at = {host.name: host.looked_at for host in hosts if host.name in in_contact}
        for host in hosts:
            for storage in host.storages:
                self._by_storage.setdefault(storage, set()).add(host.name)
        self._in_contact = frozenset(in_contact)

    def of_own(self, checkpoints: Iterable[Saved], *, nodes: int) -> Reach:
        """Return the reach of a job with these checkpoints, the furthest first.

        It waits for the hosts that can read its furthest one while there are enough of them in contact, one for each
        node, or while some have not said yet whether they can. A checkpoint that it cannot have any more is passed
        over, and the note says so of the furthest.
        """
        passed_over: Saved | None = None
        for saved in checkpoints:
            readers = self._of(saved) & self._in_contact
            if len(readers) < nodes:
                silent = self._silent(saved) - readers
                if silent and len(readers) + len(silent) >= nodes:
                    where = only(self._of(saved) or {saved.host_name})
                    known = f"its checkpoint of step {saved.step} is on {where} as far as is known"
                    return Reach(saved.step, readers, f"{known} ({_have_not_said(silent)})")
                passed_over = passed_over or saved
                continue
            is_everywhere = readers == self._in_contact
            note = None if is_everywhere else f"its checkpoint of step {saved.step} is on {only(readers)}"
            if passed_over is not None:
                where = "" if is_everywhere else f", which is on {only(readers)}"
                note = f"{self._lost(passed_over, nodes)}, so it continues from step {saved.step}{where}"
            return Reach(saved.step, None if is_everywhere else readers, note)
        return Reach(0, None, None if passed_over is None else f"{self._lost(passed_over, nodes)}, so it begins anew")

    def of_another(self, saved: Saved) -> Reach:
        """Return the reach of a job that is to start from the checkpoint of another: there is no doing without it."""
        readers = self._of(saved) or frozenset({saved.host_name})
        if readers >= self._in_contact:
            return Reach(0, None, None)
        note = f"checkpoint {saved.id} of job {saved.job_id}, which it starts from, is on {only(readers)}"
        return Reach(0, readers, note)

    def _lost(self, saved: Saved, nodes: int) -> str:
        needs = "no such host is in contact" if nodes == 1 else f"fewer than {nodes} such hosts are in contact"
        return f"its checkpoint of step {saved.step} is on {only(self._of(saved) or {saved.host_name})}, and {needs}"

    def _silent(self, saved: Saved) -> frozenset[str]:
        """The hosts in contact that have not said since a checkpoint got its place whether they can read it."""
        looks = self._looked_at.items()
        return frozenset(name for name, at in looks if not has_answered(at, saved, self._at))

    def _of(self, saved: Saved) -> frozenset[str]:
        # One that was saved before storages had ids is in the run root of the host that saved it.
        own = {saved.host_name} if saved.storage is None else self._by_storage.get(saved.storage, set())
        return frozenset(own | self._by_storage.get(saved.copy_storage or "", set()))


def warn_of_gang(session: Session, spec: JobSpec, hosts: Sequence[planner.Host]) -> str | None:
    """Return what the submitter of a job on several of `hosts` should know, if these cannot all read what it saves."""
    if spec.nodes == 1 or spec.checkpoint_root is not None or get_settings().checkpoint_root is not None:
        return None
    names = [host.name for host, _devices in suitable_hosts(spec.request, hosts)]
    rows = session.execute(select(Host.name, Host.storages).where(Host.name.in_(names)).order_by(Host.name)).all()
    if len(rows) < spec.nodes:
        return None
    for saving, own in rows:
        for reading, in_reach in rows:
            # The run root's comes first. One that has not said yet what it reads may share nothing.
            if saving != reading and (not own or own[0] not in in_reach):
                return (
                    f"nodes: there is no checkpoint_root, and host {reading} cannot read what {saving} saves in its "
                    "run root; on such hosts the job begins anew after each pause, preemption and lost attempt"
                )
    return None


def by_job(session: Session, job_ids: Select[int]) -> Mapping[int, list[Saved]]:
    """Return the checkpoints of these jobs that were not removed, by job, the furthest first."""
    found: dict[int, list[Saved]] = {}
    kept = _COLUMNS.where(Checkpoint.job_id.in_(job_ids), Checkpoint.removed_at.is_(None))
    for row in session.execute(kept.order_by(Checkpoint.step.desc(), Checkpoint.id.desc())):
        found.setdefault(row.job_id, []).append(Saved(*row))
    return found


def by_id(session: Session, ids: Select[int | None]) -> Mapping[int, Saved]:
    """Return those of these checkpoints that were not removed, by id."""
    kept = _COLUMNS.where(Checkpoint.id.in_(ids), Checkpoint.removed_at.is_(None))
    return {row.id: Saved(*row) for row in session.execute(kept)}


def saved(checkpoint: Checkpoint) -> Saved:
    """Return where a checkpoint is, by its row."""
    return Saved(
        id=checkpoint.id,
        job_id=checkpoint.job_id,
        step=checkpoint.step,
        host_name=checkpoint.host_name,
        storage=checkpoint.storage,
        copy_storage=checkpoint.copy_storage,
        placed_at=checkpoint.placed_at,
    )


_COLUMNS = select(
    Checkpoint.id,
    Checkpoint.job_id,
    Checkpoint.step,
    Checkpoint.host_name,
    Checkpoint.storage,
    Checkpoint.copy_storage,
    Checkpoint.placed_at,
)


def only(hosts: Collection[str]) -> str:
    """Say that it is these hosts alone, of which there is one at least."""
    names = sorted(hosts)
    return f"{', '.join(names[:-1])} and {names[-1]} only" if len(names) > 1 else f"{names[0]} only"


def _have_not_said(hosts: Collection[str]) -> str:
    names = sorted(hosts)
    listed = f"{', '.join(names[:-1])} and {names[-1]} have" if len(names) > 1 else f"{names[0]} has"
    return f"{listed} not said yet whether it can be read there"
