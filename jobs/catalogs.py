"""What hosts publish of their trainers, and the check of a spec against it."""

import difflib
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from jobs.errors import InvalidSpecError
from jobs.spec import JobSpec


class _Published(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")  # a newer trainer may say more


class Recipe(_Published):
    """A recipe and the models it knows."""

    name: str
    models: tuple[str, ...]


class DataSet(_Published):
    """A data set that is known by name."""

    name: str


class Catalog(_Published):
    """What the trainer of one host can run."""

    recipes: tuple[Recipe, ...]
    data: tuple[DataSet, ...]


def check(spec: JobSpec, catalogs: Sequence[Catalog]) -> None:
    """Raise InvalidSpecError for a recipe, model or data set that no host has published.

    Where none has published yet there is nothing to hold a spec against, and the trainer itself says it at the start.
    """
    if not catalogs:
        return
    train = spec.train
    recipes = [recipe for catalog in catalogs for recipe in catalog.recipes]
    _require("train.recipe", train.recipe, {recipe.name for recipe in recipes})
    models = {model for recipe in recipes if recipe.name == train.recipe for model in recipe.models}
    _require("train.model", train.model, models)
    if "/" not in train.data:
        known = {data.name for catalog in catalogs for data in catalog.data}
        _require("train.data", train.data, known, or_else="the path of a folder")


def _require(field: str, name: str, known: set[str], *, or_else: str | None = None) -> None:
    if name in known:
        return
    nearest = difflib.get_close_matches(name, known, n=3) or sorted(known)[:5]
    hint = ", ".join(nearest) + (f", or {or_else}" if or_else else "")
    raise InvalidSpecError(field, f"no registered host knows {name!r}; try {hint}")
