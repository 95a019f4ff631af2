"""The recipes by name."""

from trainer.errors import ConfigError
from trainer.names import nearest
from trainer.recipes.classification import Classification
from trainer.recipes.recipe import Recipe

_RECIPES: dict[str, Recipe] = {recipe.name: recipe for recipe in (Classification(),)}


def recipe_named(name: str) -> Recipe:
    """Return a recipe. Raises ConfigError, naming the nearest, where there is none of that name."""
    if name not in _RECIPES:
        raise ConfigError(f"recipe: {name!r} is unknown; {nearest(name, list(_RECIPES))}")
    return _RECIPES[name]


def all_recipes() -> tuple[Recipe, ...]:
    """Return every recipe there is."""
    return tuple(_RECIPES.values())
