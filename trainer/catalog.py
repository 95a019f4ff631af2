"""What can be trained here: recipes, models, data sets and options. Importing this loads no torch; building it does."""

from typing import Any

from pydantic import BaseModel, ConfigDict

from trainer.config import TrainConfig
from trainer.data.known import KNOWN_DATA


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


def build_catalog() -> Catalog:
    """Ask every recipe what it knows; imports torch and torchvision."""
    from trainer.recipes.registry import recipe_names, recipe_type

    return Catalog(
        recipes=tuple(
            CatalogRecipe(
                name=recipe.name,
                description=recipe.description,
                models=tuple(recipe.models()),
                options_schema=recipe.options_model.model_json_schema(),
            )
            for recipe in map(recipe_type, recipe_names())
        ),
        data=tuple(CatalogData(name=name, description=data.description) for name, data in KNOWN_DATA.items()),
        train_schema=TrainConfig.model_json_schema(),
    )
