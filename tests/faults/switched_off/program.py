"""The program of `tests.program`, of which rank 0 first leaves a child behind: in a session that nothing ends.

`python program.py STEPS SECONDS_PER_STEP`, as a job of the recipe `script`.
"""

import os
import runpy
import subprocess
import sys
from pathlib import Path

CHILD_LIVES_S = 600

if __name__ == "__main__":
    if os.environ["RANK"] == "0":
        sleeping = [sys.executable, "-c", f"import time; time.sleep({CHILD_LIVES_S})"]
        nowhere = subprocess.DEVNULL  # a pipe of the rank that the child held open would keep its reader waiting
        subprocess.Popen(sleeping, stdin=nowhere, stdout=nowhere, stderr=nowhere, start_new_session=True)
    runpy.run_path(str(Path(__file__).parents[2] / "program.py"), run_name="__main__")
