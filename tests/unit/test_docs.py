"""The pages: every link leads somewhere, and every name of our code that they mention is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
OURS = ("api", "jobs", "migrations", "rankzero", "trainer", "worker")
ENTRY_POINTS = "rankzero.recipes"
"""The group of entry points by which packages add recipes: a name of ours that is no module."""


def page_name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_link_to_a_file_leads_to_one(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text())
    local = [target for target in targets if "://" not in target]

    assert [target for target in local if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_name_of_our_code_is_there(page: Path) -> None:
    names = re.findall(rf"`((?:{'|'.join(OURS)})(?:\.[A-Za-z_]+)+)(?:\([^`]*\))?`", page.read_text())

    files = (".db", ".json", ".log", ".py", ".yaml")
    assert [name for name in names if not (name.endswith(files) or name == ENTRY_POINTS or is_defined(name))] == []


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_path_into_the_repository_is_there(page: Path) -> None:
    folders = "|".join((*OURS, "tests", "docs", "deploy", "benchmarks", "examples"))
    paths = re.findall(rf"`((?:{folders})/[\w./-]*)`", page.read_text())

    # What the build makes there is no part of a clone.
    assert [path for path in paths if not (ROOT / path).exists() and not path.startswith("api/static")] == []


def is_defined(name: str) -> bool:
    """Whether a dotted name is a module of ours or something that one defines, found without importing torch."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        place = ROOT.joinpath(*parts[:length])
        module = place.with_suffix(".py") if place.with_suffix(".py").is_file() else place / "__init__.py"
        if module.is_file():
            rest = parts[length:]
            return not rest or bool(
                re.search(rf"^\s*(?:async def|def|class) {rest[0]}\b|^{rest[0]}\b.*=", module.read_text(), re.MULTILINE)
            )
    return False
