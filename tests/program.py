"""A user's program without torch: its state depends on nothing but how many steps it took, and each fifth is saved.

`python program.py STEPS SECONDS_PER_STEP`, as a job of the recipe `script`. The first attempt keeps that pace, for what
is to strike it; those after it have nothing to wait for.
"""

import json
import os
import sys
import time
from pathlib import Path

from rankzero import reporting

SAVES_EVERY = 5
FIRST = 0.5
QUICK_S = 0.05


def after(weight: float) -> float:
    """Take one step of the logistic map: one more or less, or one taken twice, and the state is another."""
    return 3.9 * weight * (1 - weight)


def main() -> None:
    """Take the steps that are left."""
    steps, pace_s = int(sys.argv[1]), float(sys.argv[2])
    saved = reporting.resume_path()
    done, weight = json.loads(saved.read_text()) if saved else (0, FIRST)
    run_dir = Path(os.environ["RANKZERO_RUN_DIR"])
    folder = run_dir / "checkpoints"
    pace_s = pace_s if run_dir.name.startswith("attempt-1-") else min(pace_s, QUICK_S)
    for step in range(done + 1, steps + 1):
        time.sleep(pace_s)
        weight = after(weight)
        if os.environ["RANK"] != "0":
            continue
        reporting.report_values({"train/loss": weight}, step=step)
        if step % SAVES_EVERY == 0 or step == steps:
            folder.mkdir(exist_ok=True)
            path = folder / f"step-{step}.json"
            path.write_text(json.dumps([step, weight]))
            reporting.checkpoint(path, step=step)


if __name__ == "__main__":
    main()
