"""Roots: what the operator of a host lets jobs read data from and start programs in, and what a job needs of that.

Here paths are only text: whether a link leads out of a root, the host itself finds out (`worker.roots`).
"""

import posixpath
import re
from collections.abc import Mapping
from typing import Self

from pydantic import BaseModel, ConfigDict

from trainer.config import SCRIPT, TrainConfig
from trainer.script.options import script_options

_NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}"
_REFERENCE = re.compile(rf"({_NAME})(?::([^\x00]*))?")


class Program(BaseModel):
    """Where a program of a user's own lies."""

    model_config = ConfigDict(frozen=True, extra="ignore", from_attributes=True)

    script: str | None = None
    module: str | None = None
    cwd: str | None = None


class Needs(BaseModel):
    """What a job needs of the operator of the host that runs it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    data: str | None = None
    """`name:folder` below a data root, or a path."""
    program: Program | None = None


class Roots(BaseModel):
    """What the operator of one host allows, as the host publishes it."""

    model_config = ConfigDict(frozen=True, extra="ignore", use_attribute_docstrings=True)

    data: dict[str, str] = {}
    """Folders that data may lie in, by name. Where there are none, it may lie anywhere."""
    scripts: bool = False
    """Whether jobs may bring programs of their own."""
    code: tuple[str, ...] = ()
    """Folders that these have to lie in. Where there are none, they may lie anywhere."""

    @classmethod
    def parse(cls, *, data: str | None, scripts: bool, code: str | None) -> Self:
        """Return the roots that settings name. Raises ValueError for what names none."""
        return cls(data=parse_data_roots(data or ""), scripts=scripts, code=parse_code_roots(code or ""))

    def why_not(self, needs: Needs) -> str | None:
        """Return why a host with these roots does not take a job, in words that follow its name; None where it does."""
        if needs.program is not None:
            return self._why_no_program(needs.program)
        return None if needs.data is None else self._why_no_data(needs.data)

    def _why_no_program(self, program: Program) -> str | None:
        if not self.scripts:
            return "runs no scripts"
        if not self.code:
            return None
        folders = ", ".join(self.code)
        if program.module is not None and program.cwd is None:
            return f"looks for modules below its code roots only ({folders}): name the folder in options.cwd"
        for path in (program.script, program.cwd):
            if path is not None and not any(is_beneath(path, root) for root in self.code):
                return f"starts programs below its code roots only ({folders}), and {path} is not"
        return None

    def _why_no_data(self, data: str) -> str | None:
        if (named := reference(data)) is not None:
            return None if named[0] in self.data else f"has no data root {named[0]!r}"
        if not self.data or any(is_beneath(data, root) for root in self.data.values()):
            return None
        return f"reads data from its roots only ({describe(self.data)})"


def parse_data_roots(text: str) -> dict[str, str]:
    """Return the folders that `name=/path, other=/path` names. Raises ValueError."""
    found: dict[str, str] = {}
    for pair in filter(None, map(str.strip, text.split(","))):
        name, equals, path = (part.strip() for part in pair.partition("="))
        if not equals or not re.fullmatch(_NAME, name):
            raise ValueError(f"{pair!r} is no name=/path, with a name of letters, digits, dots, dashes and underscores")
        if name in found:
            raise ValueError(f"{name!r} is named twice")
        found[name] = _folder(path)
    return found


def parse_code_roots(text: str) -> tuple[str, ...]:
    """Return the folders that `/path, /other` names. Raises ValueError."""
    return tuple(_folder(path) for path in filter(None, map(str.strip, text.split(","))))


def reference(data: str) -> tuple[str, str] | None:
    """Return name and folder of what may name a data root (`photos`, `photos:`, `photos:2024/june`); None of a path."""
    found = _REFERENCE.fullmatch(data)
    return None if found is None else (found[1], found[2] or "")


def leaves(folder: str) -> bool:
    """Whether a folder below a root leads out of it by its own words."""
    return folder.startswith("/") or ".." in folder.split("/")


def is_beneath(path: str, root: str) -> bool:
    """Whether an absolute path is a root or lies below it, by its words."""
    whole = posixpath.normpath(path)
    return posixpath.isabs(path) and (whole == root or whole.startswith(root.rstrip("/") + "/"))


def describe(data: Mapping[str, str]) -> str:
    """Return data roots as a message lists them."""
    return ", ".join(f"{name}: {path}" for name, path in sorted(data.items()))


def needs_of(train: TrainConfig, *, known: frozenset[str], roots: frozenset[str]) -> Needs | None:
    """Return what a training needs; None where any host will do.

    `known` are the data sets that trainers know by name, `roots` the names of all data roots there are. Raises
    ConfigError for a script's options that are none.
    """
    if train.recipe == SCRIPT:
        return Needs(program=Program.model_validate(script_options(train)))
    named = reference(train.data)
    if named is None:
        return Needs(data=train.data)
    name, folder = named
    if ":" not in train.data and (name in known or name not in roots):
        return None  # known to the trainers, or to nobody
    return Needs(data=f"{name}:{folder}")


def _folder(path: str) -> str:
    if not posixpath.isabs(path) or "\0" in path:
        raise ValueError(f"{path!r} has to be the absolute path of a folder")
    return posixpath.normpath(path)
