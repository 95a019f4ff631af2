"""What can be trained here: recipes, models, data sets and options. Importing this loads no torch; building it does."""

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, ConfigDict

from trainer.config import SCRIPT, TrainConfig
from trainer.data.known import KNOWN_DATA
from trainer.error_report import safe_text
from trainer.errors import ConfigError
from trainer.script.options import ScriptOptions


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class CatalogRecipe(_Frozen):
    """One recipe."""

    name: str
    description: str
    models: tuple[str, ...]
    """What `model` may be with it."""
    options_schema: dict[str, Any]
    """JSON schema of what `options` may hold with it."""


class CatalogData(_Frozen):
    """One data set that is known by name."""

    name: str
    description: str


class Catalog(_Frozen):
    """Everything a config may name on this host."""

    recipes: tuple[CatalogRecipe, ...]
    data: tuple[CatalogData, ...]
    train_schema: dict[str, Any]
    """JSON schema of TrainConfig, with each option's description."""


_SCRIPT = CatalogRecipe(
    name=SCRIPT,
    description="a program of your own, run on the devices as torchrun would run it",
    models=(),
    options_schema=ScriptOptions.model_json_schema(),
)


def build_catalog(*, tell: Callable[[str], None]) -> Catalog:
    """Ask every recipe what it knows; imports torch and torchvision.

    A recipe of a package that cannot be used is left out, and `tell` is told why: the others can be trained all the
    same.
    """
    from trainer.recipes.registry import recipe_names, shadowed

    for sentence in shadowed():
        tell(sentence)
    recipes = []
    for name in recipe_names():
        try:
            recipes.append(_recipe(name))
        except ConfigError as error:
            tell(str(error))
    return Catalog(
        recipes=(*recipes, _SCRIPT),
        data=tuple(CatalogData(name=name, description=data.description) for name, data in KNOWN_DATA.items()),
        train_schema=TrainConfig.model_json_schema(),
    )


def _recipe(name: str) -> CatalogRecipe:
    """Raises ConfigError for a package's recipe that cannot be used."""
    from trainer.recipes.registry import recipe_type

    recipe = recipe_type(name)
    try:
        described = CatalogRecipe(
            name=name,
            description=recipe.description,
            models=tuple(recipe.models()),
            options_schema=recipe.options_model.model_json_schema(),
        )
        described.model_dump_json()  # what no JSON can hold shall cost this recipe alone its place
        return described
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever a package does
        why = f"{type(error).__name__}: {safe_text(error)}"
        raise ConfigError(f"recipe: {name!r} of {recipe.__module__} cannot say what it knows ({why})") from error
