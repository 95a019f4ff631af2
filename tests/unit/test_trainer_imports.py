"""What starts and describes a run loads no torch: only its ranks do."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "module",
    [
        "trainer",
        "trainer.catalog",
        "trainer.command",
        "trainer.api",
        "trainer.callbacks",
        "trainer.config",
        "trainer.devices",
        "trainer.journal",
        "trainer.launch",
        "trainer.main_module",
        "trainer.parent_death",
        "trainer.rank",
        "trainer.run_dir",
        "trainer.terminal",
    ],
)
def test_the_launcher_side_loads_no_torch(module: str) -> None:
    code = f"import sys, {module}; print(*sorted({{'torch', 'torchvision', 'numpy', 'PIL'}} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout.split() == []


def test_death_with_the_parent_is_armed_before_anything_slow_is_imported() -> None:
    code = "import sys, trainer.parent_death, trainer.rank; print('pydantic' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout.strip() == "False"
