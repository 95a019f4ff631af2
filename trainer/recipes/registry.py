"""The recipes by name: our own, and those that installed packages add (entry-point group `rankzero.recipes`)."""

from importlib import import_module
from importlib.metadata import EntryPoint, entry_points

from trainer.config import TrainConfig
from trainer.errors import ConfigError
from trainer.names import nearest
from trainer.recipes.recipe import Recipe

GROUP = "rankzero.recipes"
"""The entry-point group: the name of an entry is the recipe's, its object a class that follows the protocol."""
_OWN = {
    "classification": "trainer.recipes.classification:Classification",
}


def recipe_type(name: str) -> type[Recipe]:
    """Return the class of a recipe.

    Raises ConfigError, naming the nearest, where there is none of that name, and where a package's cannot be imported.
    """
    if name in _OWN:
        module, attribute = _OWN[name].split(":")
        own: type[Recipe] = getattr(import_module(module), attribute)
        return own
    added = _added()
    if name not in added:
        raise ConfigError(f"recipe: {name!r} is unknown; {nearest(name, recipe_names())}")
    return _loaded(added[name])


def build_recipe(config: TrainConfig) -> Recipe:
    """Return the recipe of a run. Raises ConfigError for one that is unknown, and for options that it does not take."""
    return recipe_type(config.recipe)(config)


def recipe_names() -> tuple[str, ...]:
    """Return the names of all recipes: our own first."""
    return (*_OWN, *(name for name in sorted(_added()) if name not in _OWN))


def _added() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def _loaded(entry: EntryPoint) -> type[Recipe]:
    try:
        added: type[Recipe] = entry.load()
    except Exception as error:
        package = entry.dist.name if entry.dist is not None else "an installed package"
        why = f"{type(error).__name__}: {error}"
        raise ConfigError(
            f"recipe: {entry.name!r} of {package} cannot be imported from {entry.value} ({why})"
        ) from error
    return added
