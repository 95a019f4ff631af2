"""The recipes by name: our own, and those that installed packages add (entry-point group `rankzero.recipes`).

Imports torch only with a recipe itself: what starts a run can tell which names there are.
"""

from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING

from trainer.config import SCRIPT, TrainConfig
from trainer.error_report import safe_text
from trainer.errors import ConfigError
from trainer.names import nearest

if TYPE_CHECKING:
    from trainer.recipes.recipe import Recipe

GROUP = "rankzero.recipes"
"""The entry-point group: the name of an entry is the recipe's, its object a class that follows the protocol."""
_OWN = {
    "classification": "trainer.recipes.classification:Classification",
    "segmentation": "trainer.recipes.segmentation:Segmentation",
    "detection": "trainer.recipes.detection:Detection",
}
_TAKEN = {*_OWN, SCRIPT}
"""Names that no package can add."""


def recipe_type(name: str) -> "type[Recipe]":
    """Return the class of a recipe.

    Raises ConfigError, naming the nearest, where there is none of that name, and, naming the package, where one that
    was added cannot be used.
    """
    if name in _OWN:
        module, attribute = _OWN[name].split(":")
        own: type[Recipe] = getattr(import_module(module), attribute)
        return own
    if name == SCRIPT:
        raise ConfigError("recipe: script is a program of the user's own, of which there is no more to do than run it")
    refuse_unknown_recipe(name)
    entries = [entry for entry in _added() if entry.name == name]
    if len(entries) > 1:
        packages = " and ".join(sorted(map(_package, entries)))
        raise ConfigError(f"recipe: {name!r} is added by {packages}; uninstall all but one of them")
    return _loaded(entries[0])


def build_recipe(config: TrainConfig) -> "Recipe":
    """Return the recipe of a run. Raises ConfigError for one that is unknown, and for options that it does not take."""
    return recipe_type(config.recipe)(config)


def refuse_unknown_recipe(name: str) -> None:
    """Raise ConfigError, naming the nearest, where there is no recipe of that name; imports none."""
    if name not in (known := recipe_names()):
        raise ConfigError(f"recipe: {name!r} is unknown; {nearest(name, known)}")


def recipe_names() -> tuple[str, ...]:
    """Return the names of all recipes: our own first."""
    return (*_OWN, *sorted({entry.name for entry in _added()}))


def shadowed() -> tuple[str, ...]:
    """Say which packages add a recipe under a name of our own, a sentence for each: ours is the one that is used."""
    return tuple(
        f"recipe: {entry.name!r} of {_package(entry)} is not used: the name is taken by RankZero's own"
        for entry in entry_points(group=GROUP)
        if entry.name in _TAKEN
    )


def _added() -> list[EntryPoint]:
    return [entry for entry in entry_points(group=GROUP) if entry.name not in _TAKEN]


def _loaded(entry: EntryPoint) -> "type[Recipe]":
    from trainer.recipes.conformance import complaints

    what = f"recipe: {entry.name!r} of {_package(entry)}"
    try:
        offered = entry.load()
        found = complaints(offered, name=entry.name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a module that exits, say, would take the catalog of all others with it
        why = f"{type(error).__name__}: {safe_text(error)}"
        raise ConfigError(f"{what} cannot be imported from {entry.value} ({why})") from error
    if found:
        raise ConfigError(f"{what} is no recipe: {entry.value} {'; '.join(found)}")
    recipe: type[Recipe] = offered
    return recipe


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else "an installed package"
