"""The example of a pipeline, run as its page says: told by webhook, it evaluates the best checkpoint."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rankzero.client import Client

EXAMPLE = Path(__file__).parents[2] / "examples" / "pipeline" / "pipeline.py"

pytestmark = pytest.mark.timeout(300)


def test_the_pipeline_is_told_of_its_job_and_finds_the_accuracy_that_the_job_reported(
    client: Client, tmp_path: Path
) -> None:
    ran = subprocess.run(
        [sys.executable, EXAMPLE, "--url", client.url, "--epochs", "1", "--min-accuracy", "0.2", "--timeout-s", "240"],
        cwd=tmp_path,
        env=os.environ | {"OMP_NUM_THREADS": "1", "RANKZERO_DATA_ROOT": str(tmp_path)},
        check=False,
        capture_output=True,
        text=True,
    )

    assert ran.returncode == 0, ran.stdout + ran.stderr
    job, told, checkpoint, verdict = ran.stdout.splitlines()
    (job_id,) = re.findall(r"job (\d+) is queued", job)
    assert client.get(int(job_id)).state == "succeeded"
    assert told == "told by webhook: job.succeeded"
    found = re.fullmatch(r"checkpoint (\d+), step (\d+): accuracy (\S+), (\S+) in the job", checkpoint)
    assert found is not None, checkpoint
    (best,) = [each for each in client.checkpoints(int(job_id)) if each.best]
    assert (int(found[1]), int(found[2])) == (best.id, best.step)
    assert found[3] == found[4]
    assert verdict == "fit for use"
