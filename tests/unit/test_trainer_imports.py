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
        "trainer.preflight",
        "trainer.rank",
        "trainer.recipes.own_options",
        "trainer.recipes.registry",
        "trainer.user_reports",
        "trainer.run_dir",
        "trainer.script.rank",
        "trainer.terminal",
        "trainer.trials",
    ],
)
def test_the_launcher_side_loads_no_torch(module: str) -> None:
    code = f"import sys, {module}; print(*sorted({{'torch', 'torchvision', 'numpy', 'PIL'}} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout.split() == []


def test_a_script_finds_what_it_needs_in_trainer_itself_and_loads_no_torch_for_it() -> None:
    code = (
        "import sys\n"
        "from trainer import *\n"
        "print(Callback.__name__, TrainConfig.__name__, TrainResult.__name__, train.__name__)\n"
        "print(ConfigError.__name__, RunFailedError.__name__, RunInterruptedError.__name__, 'torch' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout.split() == [
        *("Callback", "TrainConfig", "TrainResult", "train"),
        *("ConfigError", "RunFailedError", "RunInterruptedError", "False"),
    ]


def test_death_with_the_parent_is_armed_before_anything_slow_is_imported() -> None:
    code = "import sys, trainer.parent_death, trainer.rank; print('pydantic' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout.strip() == "False"
