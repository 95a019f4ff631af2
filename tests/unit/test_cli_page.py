"""The page of the command: every command and option of it is there, and nothing else."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from api.queries import JobQuery
from rankzero.cli.app import app

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
EVERYWHERE = frozenset({"--json", "--url", "--help"})
"""What the page says of all commands at once."""
OPTION = r"(?<![\w-])--?[a-z][a-z-]*"
WITHOUT_URL = frozenset({"up", "demo"})
"""They start a service of their own."""


def commands(group: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every command, by its words behind `rankzero`."""
    for name, command in group.commands.items():
        yield f"{path}{name}", command
        if hasattr(command, "commands"):
            yield from commands(command, f"{path}{name} ")


COMMANDS = dict(commands(typer.main.get_command(app)))
FLAGS = frozenset(re.findall(OPTION, PAGE[PAGE.index("## The flags of a job") : PAGE.index("A field is given by")]))


def rows() -> dict[str, str]:
    """What the table says of each command."""
    found: dict[str, str] = {}
    for heading, told in re.findall(r"^\| (`rankzero [^|]*) \| (.*) \|$", PAGE, re.MULTILINE):
        for words in re.findall(r"`rankzero ([^`]*)`", heading):
            # The longest beginning that is a command: arguments follow it.
            parts = words.split()
            name = next((n for n in (" ".join(parts[:k]) for k in range(len(parts), 0, -1)) if n in COMMANDS), words)
            found[name] = told
    return found


ROWS = rows()


def options_of(command: Any) -> set[str]:
    """All names of its options but those that each command has."""
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    return {name for option in options for name in (*option.opts, *option.secondary_opts)} - EVERYWHERE


def test_every_command_has_a_row_and_every_row_a_command() -> None:
    assert set(ROWS) - {"--install-completion"} == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_row_of_a_command_has_all_of_its_options_and_no_others(name: str) -> None:
    options = options_of(COMMANDS[name])
    told = set(re.findall(OPTION, ROWS[name])) - EVERYWHERE
    if name in ("submit", "plan"):
        told |= FLAGS
    assert {each for each in options if each.startswith("--")} <= told <= options


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_takes_json_and_a_service(name: str) -> None:
    options = [parameter for parameter in COMMANDS[name].params if parameter.param_type_name == "option"]
    names = {name for option in options for name in option.opts}
    assert "--json" in names
    assert ("--url" in names) == (name not in WITHOUT_URL)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_says_what_it_is(name: str) -> None:
    command = COMMANDS[name]
    assert command.help.endswith(".")
    assert [each.name for each in command.params if each.param_type_name == "option" and not each.help] == []


def test_jobs_are_listed_by_every_filter_of_the_api() -> None:
    filters = set(JobQuery.model_fields) - {"cursor", "size", "fields"}
    assert filters <= {parameter.name for parameter in COMMANDS["ls"].params}
