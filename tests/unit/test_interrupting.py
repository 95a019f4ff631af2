"""A Ctrl-C before anybody listens: it ends a command at once, and shows no traceback."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

INTERRUPTED_IMPORT = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"


@pytest.mark.parametrize("module", ["trainer", "trainer.bench"])
def test_a_command_that_is_interrupted_while_it_is_imported_ends_without_a_traceback(
    module: str, tmp_path: Path
) -> None:
    (tmp_path / "rich").mkdir()
    (tmp_path / "rich" / "__init__.py").write_text(INTERRUPTED_IMPORT)  # in place of the library that both import
    done = subprocess.run(
        [sys.executable, "-m", module, "--help"],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")
