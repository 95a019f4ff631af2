"""Recipes that packages add: what is refused, and what the catalog says of it."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from trainer.catalog import Catalog, build_catalog
from trainer.errors import ConfigError
from trainer.recipes.registry import recipe_names, recipe_type
from worker.host import read_catalog

GOOD = """
from trainer.recipes.recipe import RecipeOptions

class Options(RecipeOptions):
    window: int = 8
    "Seconds that are looked at."

class Good:
    name = "sound"
    description = "Sounds"
    best_metric, tie_metric = "val/accuracy", "val/loss"
    spawnable, sync_bn_default = True, False
    options_model = Options
    def __init__(self, config): ...
    @classmethod
    def models(cls): return ["tiny"]
    def build_data(self, group): ...
    def build_model(self, data): ...
    def check_model(self, model, data): ...
    def loss(self, model, batch): ...
    def quantities(self, data): ...
    def measure(self, model, batch): ...
    def summarize(self, totals, count, data): ...
"""
Install = Callable[[str, str, str], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Put a package where Python finds it: a module, and the metadata that pip would write for it."""
    monkeypatch.syspath_prepend(tmp_path)

    def put(package: str, entry: str, source: str) -> None:
        module = f"{package}_module"
        (tmp_path / f"{module}.py").write_text(source)
        monkeypatch.delitem(sys.modules, module, raising=False)
        metadata = tmp_path / f"{package}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(f"[rankzero.recipes]\n{entry.replace('MODULE', module)}\n")

    return put


def test_a_recipe_of_a_package_is_known_by_its_name_and_its_options_are_published(install: Install) -> None:
    install("sounds", "sound = MODULE:Good", GOOD)
    told: list[str] = []

    catalog = build_catalog(tell=told.append)

    assert recipe_type("sound").__name__ == "Good"
    assert told == []
    (sound,) = [recipe for recipe in catalog.recipes if recipe.name == "sound"]
    assert (sound.description, sound.models) == ("Sounds", ("tiny",))
    assert sound.options_schema["properties"]["window"]["description"] == "Seconds that are looked at."


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("import no_such_library", r"cannot be imported .*ModuleNotFoundError: No module named 'no_such_library'"),
        ("raise SystemExit('not here')", r"cannot be imported .*SystemExit: not here"),
        ("raise GeneratorExit('not here')", r"cannot be imported .*GeneratorExit: not here"),
        ("", r"cannot be imported .*AttributeError"),
        ("Good = 3", "is no class but of type int"),
        (GOOD.replace("def measure", "def mesure"), "has no method measure$"),
        (GOOD.replace("@classmethod", "").replace("models(cls)", "models(self)"), "models that is no class method"),
        (GOOD.replace("def __init__", "def begin"), "has no __init__ that takes the config$"),
        (GOOD.replace('name = "sound"', 'name = "noise"'), "has the name 'noise', not 'sound'$"),
        (GOOD.replace('description = "Sounds"', ""), "has no text description$"),
        (GOOD.replace("spawnable, sync_bn_default = True, False", "spawnable = 1"), "spawnable.*sync_bn_default"),
        (GOOD.replace("options_model = Options", ""), "has no options_model that derives from RecipeOptions$"),
        (
            "from trainer.recipes.recipe import Recipe\nclass Good(Recipe): name = 'sound'",
            "has no method models; has no method build_data; .*has no __init__",
        ),
    ],
)
def test_a_recipe_that_cannot_be_used_is_told_with_its_package_and_what_is_missing(
    install: Install, source: str, complaint: str
) -> None:
    install("sounds", "sound = MODULE:Good", source)

    with pytest.raises(ConfigError, match=f"recipe: 'sound' of sounds .*{complaint}"):
        recipe_type("sound")


def test_the_catalog_leaves_out_what_cannot_be_used_and_names_it(install: Install) -> None:
    install("sounds", "sound = MODULE:Good", GOOD)
    install("broken", "noise = MODULE:Good", "import no_such_library")
    mute = GOOD.replace('"sound"', '"mute"').replace('["tiny"]', "1 / 0")
    install("silent", "mute = MODULE:Good", mute)
    garbled = GOOD.replace('"sound"', '"garbled"').replace('["tiny"]', r'["\udcff"]')
    install("unclear", "garbled = MODULE:Good", garbled)
    told: list[str] = []

    names = [recipe.name for recipe in build_catalog(tell=told.append).recipes]

    assert "sound" in names
    assert not {"noise", "mute", "garbled"} & set(names)
    assert [sentence.split(" (")[0] for sentence in told] == [
        "recipe: 'garbled' of unclear_module cannot say what it knows",
        "recipe: 'mute' of silent_module cannot say what it knows",
        "recipe: 'noise' of broken cannot be imported from broken_module:Good",
    ]


def test_what_a_package_prints_is_no_part_of_the_catalog(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise = "import atexit, os\nprint('imported')\nos.write(1, b'raw')\natexit.register(print, 'ended')\n"
    install("sounds", "sound = MODULE:Good", noise + GOOD)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    catalog = read_catalog()

    assert catalog is not None
    assert "sound" in [recipe.name for recipe in Catalog.model_validate(catalog).recipes]


def test_a_package_cannot_take_a_name_of_our_own(install: Install) -> None:
    install("greedy", "classification = MODULE:Good", GOOD.replace('"sound"', '"classification"'))
    install("grasping", "script = MODULE:Good", GOOD.replace('"sound"', '"script"'))
    told: list[str] = []

    build_catalog(tell=told.append)

    assert recipe_type("classification").__module__ == "trainer.recipes.classification"
    assert recipe_names().count("classification") == 1
    assert sorted(told) == [
        "recipe: 'classification' of greedy is not used: the name is taken by RankZero's own",
        "recipe: 'script' of grasping is not used: the name is taken by RankZero's own",
    ]


def test_of_two_packages_with_one_name_neither_is_taken(install: Install) -> None:
    install("sounds", "sound = MODULE:Good", GOOD)
    install("noises", "sound = MODULE:Good", GOOD)

    with pytest.raises(ConfigError, match="'sound' is added by noises and sounds; uninstall all but one"):
        recipe_type("sound")
