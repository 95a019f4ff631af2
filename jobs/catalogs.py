"""What hosts publish of their trainers, and the check of a spec against it."""

import difflib
from collections.abc import Collection, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from jobs.errors import InvalidSpecError
from jobs.recipe_options import check_options, refuse_invalid_schema
from jobs.spec import JobSpec
from trainer.config import SCRIPT


class _Published(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")  # a newer trainer may say more


class Recipe(_Published):
    """A recipe and the models it knows."""

    name: str
    description: str = ""
    models: tuple[str, ...]
    options_schema: dict[str, Any] = {}
    """JSON schema of its own options; that of a trainer which publishes none takes any."""


class DataSet(_Published):
    """A data set that is known by name."""

    name: str
    description: str = ""


class Catalog(_Published):
    """What the trainer of one host can run."""

    recipes: tuple[Recipe, ...]
    data: tuple[DataSet, ...]

    def refuse_invalid_schemas(self) -> None:
        """Raise ValueError, naming the recipe, for a schema that nothing could be held against."""
        for recipe in self.recipes:
            try:
                refuse_invalid_schema(recipe.options_schema)
            except ValueError as error:
                raise ValueError(f"recipe {recipe.name!r}: options_schema: {error}") from error


def check(spec: JobSpec, catalogs: Sequence[Catalog], *, data_roots: Collection[str] = ()) -> None:
    """Raise InvalidSpecError for a recipe, model, data set or recipe's option that no host has published.

    `data_roots` are the names of folders that a host's operator has given one.

    Where none has published yet there is nothing to hold a spec against, and the trainer itself says it at the start.
    """
    if not catalogs:
        return
    train = spec.train
    recipes = [recipe for catalog in catalogs for recipe in catalog.recipes]
    _require("train.recipe", train.recipe, {recipe.name for recipe in recipes})
    if train.recipe == SCRIPT:
        return  # what a program trains, and on what, is its own
    models = {model for recipe in recipes if recipe.name == train.recipe for model in recipe.models}
    others = sorted({recipe.name for recipe in recipes if train.model in recipe.models})
    if others and train.model not in models:
        told = f"recipe {train.recipe} has no model {train.model!r}, which is one of {' and '.join(others)}"
        raise InvalidSpecError("train.model", f"{told}; try {_nearest(train.model, models)}")
    _require("train.model", train.model, models)
    if ":" not in train.data and "/" not in train.data:
        known = {data.name for catalog in catalogs for data in catalog.data} | set(data_roots)
        _require("train.data", train.data, known, or_else="the path of a folder")
    check_options(train.options, [recipe.options_schema for recipe in recipes if recipe.name == train.recipe])


def _require(field: str, name: str, known: set[str], *, or_else: str | None = None) -> None:
    if name in known:
        return
    hint = _nearest(name, known) + (f", or {or_else}" if or_else else "")
    raise InvalidSpecError(field, f"no registered host knows {name!r}; try {hint}")


def _nearest(name: str, known: set[str]) -> str:
    return ", ".join(difflib.get_close_matches(name, known, n=3) or sorted(known)[:5])
