"""The wheel of `make dist`: the dashboard is in it as it was built."""

import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

from api import bundle
from tests.integration.served_dashboard import write_build

ROOT = Path(__file__).parents[2]


def test_the_wheel_has_the_dashboard_and_none_of_its_sources(tmp_path: Path) -> None:
    context = tmp_path / "context"
    (context / "api").mkdir(parents=True)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, context)
    for path in (ROOT / "api").glob("*.py"):
        shutil.copy(path, context / "api")
    write_build(context / "api" / "static")
    (context / "api" / "web" / "src").mkdir(parents=True)
    for name in ("__init__.py", "build.py", "package.json", "src/main.ts"):
        (context / "api" / "web" / name).write_text("")
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index", "--quiet"]
    subprocess.run([*pip, "--wheel-dir", str(tmp_path), "."], cwd=context, check=True)

    (wheel,) = tmp_path.glob("rankzero-*.whl")
    with ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    assert bundle.read(tmp_path / "installed" / "api" / "static") == bundle.read(context / "api" / "static")
    assert not (tmp_path / "installed" / "api" / "web").exists()
