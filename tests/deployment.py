"""The files of `deploy/` and docker-compose.yml as the tests read them: what each starts, and with what around it."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
DEPLOY = ROOT / "deploy"
COMPOSE = ROOT / "docker-compose.yml"
OURS = frozenset({"api", "jobs", "migrations", "rankzero", "trainer", "worker"})
MISSING = """
from importlib.machinery import PathFinder

missing = frozenset({names!r})
found = PathFinder.find_spec


def find_spec(name, path=None, target=None):
    return None if name.partition(".")[0] in missing else found(name, path, target)


PathFinder.find_spec = staticmethod(find_spec)
"""
"""A `sitecustomize` under which an interpreter does not find these packages, as if they were not installed."""


@dataclass(frozen=True)
class Image:
    """What a Dockerfile of ours makes: what it installs, its environment, and what it runs."""

    extras: tuple[str, ...]
    environment: Mapping[str, str]
    command: tuple[str, ...]

    @classmethod
    def read(cls, dockerfile: Path) -> "Image":
        """Read the last stage of a Dockerfile, which is what runs, with the defaults of its arguments."""
        _, _, last = dockerfile.read_text().rpartition("\nFROM ")
        text = re.sub(r"\\\n", " ", last)
        lines = re.findall(r"^([A-Z]+) +(.+)$", text, re.MULTILINE)
        arguments = dict(value.split("=", 1) for instruction, value in lines if instruction == "ARG")
        installs = [value for instruction, value in lines if (instruction, value[:11]) == ("RUN", "pip install")]
        assert installs == ['pip install ".[${EXTRAS}]"', "pip install --no-deps --force-reinstall ."], installs
        pairs = " ".join(value for instruction, value in lines if instruction == "ENV").split()
        (command,) = [value for instruction, value in lines if instruction == "CMD"]
        return cls(
            extras=tuple(arguments["EXTRAS"].split(",")),
            environment=dict(pair.split("=", 1) for pair in pairs),
            command=tuple(json.loads(command)),
        )


@dataclass(frozen=True)
class Container:
    """A service of docker-compose.yml, with its variables filled in."""

    command: tuple[str, ...]
    environment: Mapping[str, str]
    healthcheck: tuple[str, ...]
    waits_for: Mapping[str, str]
    """The services that have to be there first, and what has to be the case with each."""
    stop_grace_period: str | None
    image: Image | None
    """None for those that are not ours."""


def containers(variables: Mapping[str, str]) -> Mapping[str, Container]:
    """Return the services of docker-compose.yml by name, as `docker compose` would read them with these variables."""
    services = yaml.safe_load(COMPOSE.read_text())["services"]
    return {name: _container(_filled_in(service, variables)) for name, service in services.items()}


def head_commands(file: Path) -> Sequence[str]:
    """Return the commands in the comment at the head of a file."""
    head = re.match(r"(?:#.*\n)+", file.read_text())
    assert head is not None
    indented = re.findall(r"^#   (\S.*)$", head[0], re.MULTILINE)
    return [re.split(r"\s{2,}#", line)[0].strip() for line in indented]


def unit(name: str, instance: str = "") -> Mapping[str, Sequence[str]]:
    """Return the settings of a systemd unit by name, each with all of its values; `%i` stands for `instance`."""
    settings: dict[str, list[str]] = {}
    for line in (DEPLOY / "systemd" / name).read_text().splitlines():
        if "=" in line and not line.startswith("#"):
            key, _, value = line.partition("=")
            settings.setdefault(key, []).append(value.replace("%i", instance))
    return settings


def variables_of(file: Path) -> dict[str, str]:
    """Return what a file of `NAME=value` lines sets."""
    return dict(re.findall(r"^([A-Z_]+)=(.*)$", file.read_text(), re.MULTILINE))


@cache
def installed_by(extras: tuple[str, ...]) -> frozenset[str]:
    """Return the distributions that an installation of ours with these extras has, as pip would resolve it here.

    Ours is read from pyproject.toml, all others from what is installed.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pending = [Requirement(f"rankzero[{','.join(extras)}]")]
    found: set[tuple[str, str]] = set()
    while pending:
        requirement = pending.pop()
        name = canonicalize_name(requirement.name)
        for extra in {"", *requirement.extras} - {extra for each, extra in found if each == name}:
            found.add((name, extra))
            if name == "rankzero":
                lines = project["optional-dependencies"][extra] if extra else project["dependencies"]
                pending += [Requirement(line) for line in lines]
                continue
            for each in map(Requirement, metadata.requires(name) or ()):
                if each.marker is None or each.marker.evaluate({"extra": extra}):
                    pending.append(each)
    return frozenset(name for name, _ in found)


def package(folder: Path) -> Path:
    """Build what the images install from what .dockerignore lets into them, and return where it is unpacked."""
    context = folder / "context"
    context.mkdir(parents=True)
    for name in re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE):
        if (ROOT / name).is_dir():
            # Of the dashboard what its own stage has built.
            ignored = shutil.ignore_patterns("__pycache__", "node_modules", ".static-*")
            shutil.copytree(ROOT / name, context / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, context)
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index", "--quiet"]
    subprocess.run([*pip, "--wheel-dir", str(folder), "."], cwd=context, check=True)
    (wheel,) = folder.glob("rankzero-*.whl")
    with ZipFile(wheel) as archive:
        archive.extractall(folder / "package")
    return folder / "package"


def folder_without(distributions: Collection[str], folder: Path) -> Path:
    """Make a folder that, first on PYTHONPATH, hides every installed package that is of none of these distributions."""
    owners = metadata.packages_distributions()
    names = [
        package
        for package, names in owners.items()
        if package not in OURS | sys.stdlib_module_names
        and not any(canonicalize_name(name) in distributions for name in names)
    ]
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(MISSING.format(names=sorted(names)))
    return folder


def _container(service: Mapping[str, Any]) -> Container:
    build = service.get("build")
    image = None if build is None else Image.read(ROOT / build["dockerfile"])
    if build is not None and image is not None:
        assert tuple(build["args"]["EXTRAS"].split(",")) == image.extras, "the file and its image agree"
    (kind, *check) = service.get("healthcheck", {}).get("test", ["CMD"])
    assert kind == "CMD"
    return Container(
        command=tuple(service.get("command", image.command if image else ())),
        environment={**(image.environment if image else {}), **service.get("environment", {})},
        healthcheck=tuple(check),
        waits_for={name: each["condition"] for name, each in service.get("depends_on", {}).items()},
        stop_grace_period=service.get("stop_grace_period"),
        image=image,
    )


def _filled_in(value: Any, variables: Mapping[str, str]) -> Any:
    """Fill in variables as `docker compose` does: in texts, once the file is read, so that each stays a text."""
    if isinstance(value, dict):
        return {key: _filled_in(each, variables) for key, each in value.items()}
    if isinstance(value, list):
        return [_filled_in(each, variables) for each in value]
    if not isinstance(value, str):
        return value

    def meant(found: re.Match[str]) -> str:
        name, operator, word = found.groups()
        if name in variables:
            return variables[name]
        assert operator != ":?", f"{name}: {word}"
        return word or ""

    return re.sub(r"(?<!\$)\$\{(\w+)(?:(:-|:\?)([^}]*))?\}", meant, value).replace("$$", "$")
