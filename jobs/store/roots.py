"""What hosts allow jobs to read and start: each publishes it; specs are held against it, and the queue by each plan."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import structlog
from pydantic import ValidationError
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from jobs import catalogs
from jobs.errors import InvalidSpecError
from jobs.roots import Needs, Roots, needs_of
from jobs.spec import JobSpec
from jobs.store import hosts
from jobs.store.reach import Reach, only
from jobs.store.transitions import changed
from jobs.tables import Host

HOW_TO_RUN_SCRIPTS = (
    "a host's operator turns them on with RANKZERO_SCRIPTS=on for its worker, and says with RANKZERO_CODE_ROOTS where "
    "they have to lie"
)
MOST_NAMED = 5
"""Hosts whose words an error repeats."""

log = structlog.get_logger()


def publish(session: Session, host_name: str, roots: Roots) -> None:
    """Publish what the operator of a host allows."""
    changed(session, update(Host).where(Host.name == host_name).values(roots=roots.model_dump(mode="json")))


def by_host(session: Session) -> dict[str, Roots | None]:
    """Return what each host allows, by name; None of one that does not say, which may take anything."""
    query = select(Host.name, Host.roots).where(Host.removed_at.is_(None)).order_by(Host.name)
    return {name: _parsed(name, roots) for name, roots in session.execute(query)}


def settle(session: Session, spec: JobSpec) -> Needs | None:
    """Hold a spec against what hosts have published; return what it needs of their operators, None if any will do.

    Raises InvalidSpecError for a recipe, model or data set that no host knows, and where no host allows the program or
    the data, with what each says. A host that publishes nothing is taken to know, and to allow, all.
    """
    known, allowed = hosts.catalogs(session), by_host(session)
    names = frozenset(name for roots in allowed.values() if roots is not None for name in roots.data)
    catalogs.check(spec, known, data_roots=names)
    known_data = frozenset(data.name for catalog in known for data in catalog.data)
    needs = needs_of(spec.train, known=known_data, roots=names)
    pinned = spec.request.host
    asked = {pinned: allowed[pinned]} if pinned in allowed else allowed
    if needs is not None and asked:
        _refuse(needs, asked)
    return needs


@dataclass
class Allowances:
    """Which hosts allow what jobs need, as one plan sees it."""

    by_host: Mapping[str, Roots | None]
    _found: dict[str, tuple[frozenset[str], str]] = field(default_factory=dict)
    """The hosts that allow each needs that were asked about, and that in words."""

    def narrowed(self, reached: Reach, needs: str | None) -> Reach:
        """Return the reach of a job, without the hosts that do not allow what it `needs` (the JSON of a Needs)."""
        if needs is None:
            return reached
        allowing, note = self._allowing(needs)
        if len(allowing) == len(self.by_host):
            return reached
        hosts = allowing if reached.hosts is None else allowing & reached.hosts
        return Reach(reached.step, hosts, note if reached.note is None else f"{reached.note}; {note}")

    def _allowing(self, needs: str) -> tuple[frozenset[str], str]:
        # Thousands of waiting jobs share a few needs.
        if needs not in self._found:
            wanted = Needs.model_validate_json(needs)
            hosts = (name for name, roots in self.by_host.items() if roots is None or roots.why_not(wanted) is None)
            allowing = frozenset(hosts)
            subject = f"its data {wanted.data}" if wanted.program is None else "its program"
            self._found[needs] = allowing, f"{subject} is allowed on {only(allowing) if allowing else 'no host'}"
        return self._found[needs]


def _refuse(needs: Needs, asked: Mapping[str, Roots | None]) -> None:
    """Raise InvalidSpecError where none of these hosts allows what a job needs."""
    refusals = [(name, roots and roots.why_not(needs)) for name, roots in asked.items()]
    if not all(why for _, why in refusals):
        return
    if needs.program is not None and not any(roots and roots.scripts for roots in asked.values()):
        where = f"host {refusals[0][0]} runs no" if len(refusals) == 1 else "no host runs"
        raise InvalidSpecError("train.recipe", f"{where} programs of users; {HOW_TO_RUN_SCRIPTS}")
    listed = [f"host {name} {why}" for name, why in refusals[:MOST_NAMED]]
    more = f"; {len(refusals) - MOST_NAMED} more do not take it either" if len(refusals) > MOST_NAMED else ""
    raise InvalidSpecError("train.data" if needs.program is None else "train.options", "; ".join(listed) + more)


def _parsed(host_name: str, stored: object) -> Roots | None:
    if stored is None:
        return None
    try:
        return Roots.model_validate(stored)
    except ValidationError as error:  # of another release: its own supervisors still hold to it
        log.warning("roots_unreadable", host=host_name, error=str(error))
        return None
