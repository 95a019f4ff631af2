"""The page on recipes: what it shows is the example's own code, which is installed and trained elsewhere."""

import re
from pathlib import Path

import pytest

from trainer.recipes.conformance import complaints
from trainer.recipes.recipe import Recipe

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "next-byte-recipe"
PAGE = (ROOT / "docs" / "recipes.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
SOURCES = {"python": "next_byte.py", "toml": "pyproject.toml", "yaml": "README.md"}


@pytest.mark.parametrize(("language", "block"), BLOCKS)
def test_each_block_is_a_part_of_the_example(language: str, block: str) -> None:
    assert block in (EXAMPLE / SOURCES[language]).read_text()


def test_every_part_of_the_protocol_is_in_its_table() -> None:
    rows = "\n".join(line for line in PAGE.splitlines() if line.startswith("| `"))
    parts = {*Recipe.__annotations__, *(name for name in vars(Recipe) if name[0] != "_"), "__init__"}
    assert {part for part in parts if f"`{part}" not in rows and f", `{part}" not in rows} == set()


def test_what_is_asked_of_a_class_is_every_part_of_the_protocol() -> None:
    asked = " ".join(complaints(type("Empty", (), {}), name="empty"))
    parts = {*Recipe.__annotations__, *(name for name in vars(Recipe) if name[0] != "_"), "__init__"}
    assert {part for part in parts if part not in asked and part != "name"} == set()
