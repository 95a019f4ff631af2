"""What the API answers of recipes."""

from typing import Annotated, Any

from pydantic import AliasPath, BaseModel, ConfigDict, Field


class _Shown(BaseModel):
    model_config = ConfigDict(from_attributes=True, frozen=True, use_attribute_docstrings=True)


class RecipeSummary(_Shown):
    """A recipe: how model, data, loss and metrics of a task are built."""

    name: str
    """What `train.recipe` calls it."""
    description: str
    models: list[str]
    """What `train.model` may be with it; empty where it takes none."""
    hosts: list[str]
    """The hosts that have it."""


class RecipeVariant(_Shown):
    """A recipe as some hosts have it."""

    hosts: list[str]
    description: Annotated[str, Field(validation_alias=AliasPath("recipe", "description"))]
    models: Annotated[list[str], Field(validation_alias=AliasPath("recipe", "models"))]
    options_schema: Annotated[dict[str, Any], Field(validation_alias=AliasPath("recipe", "options_schema"))]
    """JSON schema of what `train.options` may hold with it."""


class Recipe(RecipeSummary):
    """A recipe with its options."""

    variants: list[RecipeVariant]
    """One, unless hosts have it in several releases; that of the most hosts first."""


class Recipes(_Shown):
    """Every recipe that some host has."""

    items: list[RecipeSummary]
