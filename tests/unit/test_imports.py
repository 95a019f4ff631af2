"""Who may import whom: service processes load no torch, and each contract of import directions holds and can fail."""

import ast
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from tests.deployment import OURS, installed_by

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
CONTRACTS = {contract["id"]: contract["name"] for contract in PYPROJECT["contracts"]}

# What a host of the service need not have installed, and what would make its processes large and slow to start.
HEAVY = ("torch", "torchvision", "numpy", "PIL", "sklearn")

# For each contract, the imports that must break it: the module that gets the line, and the line.
FORBIDDEN = {
    "api-worker": [("api/added.py", "import worker"), ("worker/added.py", "import api")],
    "trainer": [
        ("trainer/added.py", f"import {package}") for package in ("api", "jobs", "migrations", "rankzero", "worker")
    ],
    "torch-free": [
        *[
            (f"trainer/{name}.py", "import torch")
            for name in ("config", "devices", "error_report", "errors", "journal", "user_reports", "run_dir")
        ],
        ("trainer/config.py", "from torchvision import models"),
        ("trainer/errors.py", "from trainer import heavy"),  # torch behind a module of ours
    ],
    "jobs": [
        ("jobs/added.py", line)
        for line in ("import api", "import worker", "import rankzero", "import trainer", "from trainer import run_dir")
    ],
    "api": [
        ("api/added.py", line) for line in ("import rankzero", "import trainer", "from trainer.run_dir import RunDir")
    ],
    "worker": [("worker/added.py", line) for line in ("import rankzero", "import trainer", "import migrations.env")],
    "rankzero": [
        ("rankzero/added.py", line)
        for line in ("import api", "import jobs", "import worker", "import trainer", "import trainer.config")
    ],
    "migrations": [
        ("migrations/added.py", f"import {package}") for package in ("api", "rankzero", "trainer", "worker")
    ],
    "service-torch-free": [
        (f"{package}/added.py", "import torch") for package in ("api", "jobs", "migrations", "rankzero", "worker")
    ],
}


# What each package may count on, by the extra of an installation that runs it, and the modules that ask for more.
EXTRAS = {
    "api": "api",
    "jobs": "service",
    "migrations": "service",
    "rankzero": "",
    "trainer": "trainer",
    "worker": "worker",
}
ASK_FOR_MORE = {"rankzero/embedded.py": "embedded", "rankzero/resources/results.py": "pandas"}


@pytest.mark.parametrize("module", ["api.app", "worker.app", "rankzero", "rankzero.cli", "jobs.database"])
def test_importing_a_service_module_loads_no_torch(module: str) -> None:
    found = subprocess.run(
        [sys.executable, "-c", f"import sys, {module}; print(*sorted(set({HEAVY}) & set(sys.modules)))"],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stderr
    assert found.stdout.split() == []


def test_help_and_the_completion_of_words_load_no_client_and_no_service() -> None:
    wanted = ("httpx2", "pydantic", "pandas", "sqlalchemy", "psutil")
    found = subprocess.run(
        [sys.executable, "-c", f"import sys, rankzero.cli.app; print(*sorted(set({wanted}) & set(sys.modules)))"],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert (found.returncode, found.stdout.split()) == (0, []), found.stderr


@pytest.mark.parametrize("package", PYPROJECT["root_packages"])
def test_a_package_imports_only_what_is_installed_with_it(package: str) -> None:
    owners = metadata.packages_distributions()
    missing = []
    for path in (ROOT / package).rglob("*.py"):
        if "node_modules" in path.parts:  # others' programs, which build the dashboard
            continue
        name = str(path.relative_to(ROOT))
        extra = ASK_FOR_MORE.get(name, EXTRAS[package])
        there = installed_by((extra,) if extra else ())
        for module in imported_by(path) - sys.stdlib_module_names - OURS:
            if there.isdisjoint(canonicalize_name(owner) for owner in owners.get(module, ())):
                missing.append(f"{name}: {module}")
    assert missing == []


def imported_by(path: Path) -> set[str]:
    """The first names of all that a module imports, at its top or later."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module.partition(".")[0])
    return names


def test_the_contracts_hold() -> None:
    lint = lint_imports(ROOT)
    assert lint.returncode == 0, lint.stdout


def test_each_contract_has_an_import_that_must_break_it() -> None:
    assert FORBIDDEN.keys() == CONTRACTS.keys()


@pytest.mark.parametrize(
    ("contract", "module", "line"),
    [(contract, module, line) for contract, cases in FORBIDDEN.items() for module, line in cases],
)
def test_a_forbidden_import_breaks_its_contract(contract: str, module: str, line: str, tmp_path: Path) -> None:
    copy_packages(tmp_path)
    with (tmp_path / module).open("a") as file:
        file.write(f"\n{line}\n")

    lint = lint_imports(tmp_path, contract)

    assert lint.returncode == 1, lint.stdout + lint.stderr
    assert f"{CONTRACTS[contract]} BROKEN" in " ".join(lint.stdout.split())


def copy_packages(folder: Path) -> None:
    shutil.copy(ROOT / "pyproject.toml", folder)
    for package in PYPROJECT["root_packages"]:
        ignored = shutil.ignore_patterns("__pycache__", "web", "static")
        shutil.copytree(ROOT / package, folder / package, ignore=ignored)
    (folder / "trainer" / "heavy.py").write_text("import torch\n")


def lint_imports(folder: Path, *contracts: str) -> subprocess.CompletedProcess[str]:
    """Run import-linter over the packages in `folder`: it puts its working folder first on the path."""
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    for contract in contracts:
        command += ["--contract", contract]
    return subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
