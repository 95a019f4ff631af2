"""Conformance: what a class that a package offers as a recipe lacks of the protocol."""

from inspect import getattr_static

from trainer.recipes.recipe import Recipe, RecipeOptions

_METHODS = (
    *("models", "build_data", "build_model", "check_model"),
    *("loss", "quantities", "measure", "summarize"),
)
_TEXTS = ("description", "best_metric", "tie_metric")
_TRUTH_VALUES = ("spawnable", "sync_bn_default")


def complaints(offered: object, *, name: str) -> tuple[str, ...]:
    """Say what keeps an object from being the recipe `name`, a few words for each part; nothing if it is one.

    A class that derives from Recipe itself has every method of it, none of which does anything: those count as missing.
    """
    if not isinstance(offered, type):
        return (f"is no class but of type {type(offered).__name__}",)
    found = [f"has no method {part}" for part in _METHODS if not _is_own_method(offered, part)]
    if _is_own_method(offered, "models") and not _is_of_the_class(offered, "models"):
        found.append("has a models that is no class method: the catalog asks the class")
    if getattr_static(offered, "__init__") in (object.__init__, vars(Recipe)["__init__"]):
        found.append("has no __init__ that takes the config")
    if getattr(offered, "name", None) != name:
        found.append(f"has the name {getattr(offered, 'name', None)!r}, not {name!r}")
    found += [f"has no text {part}" for part in _TEXTS if not isinstance(getattr(offered, part, None), str)]
    found += [
        f"does not say {part} (True or False)"
        for part in _TRUTH_VALUES
        if not isinstance(getattr(offered, part, None), bool)
    ]
    options = getattr(offered, "options_model", None)
    if not (isinstance(options, type) and issubclass(options, RecipeOptions)):
        found.append("has no options_model that derives from RecipeOptions")
    return tuple(found)


def _is_own_method(offered: type, part: str) -> bool:
    method = getattr_static(offered, part, None)
    return method is not vars(Recipe)[part] and callable(getattr(offered, part, None))


def _is_of_the_class(offered: type, part: str) -> bool:
    return isinstance(getattr_static(offered, part), (classmethod, staticmethod))
