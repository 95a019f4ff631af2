"""Recipes that can be run: what the trainers of the hosts have published, and where they differ."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from jobs.catalogs import Recipe
from jobs.errors import NotFoundError
from jobs.store import hosts


@dataclass(frozen=True)
class Variant:
    """A recipe as some hosts have it."""

    recipe: Recipe
    hosts: list[str]


@dataclass(frozen=True)
class Offer:
    """A recipe by its name; where hosts have installed several releases of it there are several variants."""

    name: str
    variants: list[Variant]
    """That of the most hosts first."""

    @property
    def description(self) -> str:
        """What it is, in the words of the most hosts."""
        return self.variants[0].recipe.description

    @property
    def models(self) -> list[str]:
        """Every model that some host knows with it."""
        return sorted({model for variant in self.variants for model in variant.recipe.models})

    @property
    def hosts(self) -> list[str]:
        """Every host that has it."""
        return sorted(host for variant in self.variants for host in variant.hosts)


def offers(session: Session) -> Sequence[Offer]:
    """Return every recipe that some host has published, by name."""
    found: dict[str, list[Variant]] = {}
    for host_name, catalog in hosts.catalogs_by_host(session).items():
        for recipe in catalog.recipes:
            variants = found.setdefault(recipe.name, [])
            same = next((variant for variant in variants if variant.recipe == recipe), None)
            if same is None:
                variants.append(Variant(recipe, [host_name]))
            else:
                same.hosts.append(host_name)
    return [
        Offer(name, sorted(variants, key=lambda variant: -len(variant.hosts)))
        for name, variants in sorted(found.items())
    ]


def get(session: Session, name: str) -> Offer:
    """Return a recipe. Raises NotFoundError."""
    known = offers(session)
    for offer in known:
        if offer.name == name:
            return offer
    names = ", ".join(offer.name for offer in known)
    raise NotFoundError(f"no host has a recipe {name!r}" + (f"; there are {names}" if names else ""))
