"""Data sets that jobs can name: those that trainers know, and those that lie in the data roots of hosts."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import structlog
from pydantic import ValidationError
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from jobs.data_sets import DataSet
from jobs.errors import NotFoundError
from jobs.store import hosts
from jobs.store.transitions import changed
from jobs.tables import Host

log = structlog.get_logger()


@dataclass(frozen=True)
class Lying:
    """A data set as it lies on one host."""

    host: str
    data_set: DataSet


@dataclass
class Offer:
    """A data set by its name."""

    name: str
    description: str | None = None
    """Of one that trainers know by name."""
    knowing: list[str] = field(default_factory=list)
    """Hosts whose trainers do."""
    lying: list[Lying] = field(default_factory=list)
    """Where it lies in a data root."""

    @property
    def kind(self) -> str:
        """How it is laid out, as on the first host; `builtin` of what trainers know by name."""
        return self.lying[0].data_set.kind if self.lying else "builtin"

    @property
    def hosts(self) -> list[str]:
        """Every host that has it."""
        return sorted({*self.knowing, *(each.host for each in self.lying)})

    @property
    def samples(self) -> int | None:
        """Samples in all its sets, as on the first host; None where nobody has counted."""
        splits = self.lying[0].data_set.splits if self.lying else {}
        return sum(split.samples for split in splits.values()) if splits else None

    @property
    def classes(self) -> int | None:
        """Number of its classes, as on the first host; None where nobody has counted."""
        splits = self.lying[0].data_set.splits if self.lying else {}
        return len({name for split in splits.values() for name in split.classes}) if splits else None


def publish(session: Session, host_name: str, found: Sequence[DataSet]) -> None:
    """Publish what lies in the data roots of a host."""
    stored = [each.model_dump(mode="json") for each in found]
    changed(session, update(Host).where(Host.name == host_name).values(data_sets=stored))


def offers(session: Session) -> Sequence[Offer]:
    """Return every data set that some host has, by name."""
    found: dict[str, Offer] = {}
    for host_name, catalog in hosts.catalogs_by_host(session).items():
        for known in catalog.data:
            offer = found.setdefault(known.name, Offer(known.name))
            offer.description = offer.description or known.description
            offer.knowing.append(host_name)
    query = select(Host.name, Host.data_sets).where(Host.removed_at.is_(None), Host.data_sets.is_not(None))
    for host_name, stored in session.execute(query.order_by(Host.name)):
        for each in stored:
            try:
                data_set = DataSet.model_validate(each)
            except ValidationError as error:  # of another release
                log.warning("data_set_unreadable", host=host_name, error=str(error))
                continue
            # A bare name means what the trainers know; the root of that name is told from it by its colon.
            name = f"{data_set.name}:" if data_set.name in found and found[data_set.name].knowing else data_set.name
            found.setdefault(name, Offer(name)).lying.append(Lying(host_name, data_set))
    return [found[name] for name in sorted(found)]


def get(session: Session, name: str) -> Offer:
    """Return a data set; `photos:` means `photos`, where no trainer knows that by name. Raises NotFoundError."""
    known = {offer.name: offer for offer in offers(session)}
    offer = known.get(name) or known.get(name.removesuffix(":"))
    if offer is None or (name.endswith(":") and not offer.lying):
        names = ", ".join(list(known)[:20])
        raise NotFoundError(f"no host has a data set {name!r}" + (f"; there are {names}" if names else ""))
    return offer
