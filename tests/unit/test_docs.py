"""The pages: every link leads somewhere, and every name of our code that they mention is there."""

import re
from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup

from rankzero.cli.app import app

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
    paths = re.findall(rf"`((?:{folders})/(?!\d)[\w./-]*)`", page.read_text())  # `jobs/7` is a job

    # What the build makes there is no part of a clone.
    assert [path for path in paths if not (ROOT / path).exists() and not path.startswith("api/static")] == []


# The changelog also names what there was.
@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=page_name)
def test_every_command_that_is_mentioned_is_there_with_its_options(page: Path) -> None:
    mentioned = re.findall(r"`((?:RANKZERO_\w+=\S+ )?rankzero [^`]+)`", page.read_text())
    assert {text: why for text in mentioned if (why := what_is_unknown(text))} == {}


def what_is_unknown(text: str) -> str:
    """Return the first word of a command line that `rankzero` would not know; an empty text where it knows all."""
    command = typer.main.get_command(app)
    for word in text.partition("rankzero ")[2].split():
        if isinstance(command, TyperGroup) and word[0] not in "-…":
            if word not in command.commands:
                return word
            command = command.commands[word]
        elif word.startswith("--"):
            known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
            if word.partition("=")[0].rstrip(",") not in known | {"--help"}:
                return word
    return ""


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
