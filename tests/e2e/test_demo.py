"""`rankzero demo`: the main job on real data, from an empty folder to a checkpoint that was loaded again."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.faults.test_embedded import environment
from worker.processes import marked_processes

KEYS = [
    *("job_id", "state", "attempts", "device", "world_size"),
    *("accuracy", "reloaded_accuracy", "epochs", "checkpoint", "seconds"),
]


@pytest.mark.timeout(400)
def test_the_demo_prints_one_json_object_with_a_trained_and_reloaded_accuracy(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "rankzero.cli", "demo", "--json", "--data-dir", str(tmp_path / "data")],
        env=environment(),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=360,
    )

    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert list(result) == KEYS
    assert (result["state"], result["attempts"], result["world_size"]) == ("succeeded", 1, 2)
    assert result["device"] == "cuda:0,cuda:1 (simulated)"
    assert result["accuracy"] >= 0.95
    assert result["reloaded_accuracy"] == result["accuracy"]
    assert Path(result["checkpoint"]).is_file()
    assert "accuracy" in done.stderr
    assert "ETA" in done.stderr
    assert not [each for each in marked_processes() if (each.run_dir or "").startswith(str(tmp_path))]


def test_the_folder_of_an_earlier_demo_is_removed_unless_it_is_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    from rankzero.demo import demo_folder

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    over, in_use, begun = (tmp_path / f"rankzero-demo-{name}" for name in ("over", "in-use", "begun"))
    for folder in (over, in_use, begun):
        folder.mkdir()
    (over / "lock").touch()
    with (in_use / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        new = demo_folder()
    assert {path.name for path in tmp_path.iterdir()} == {in_use.name, begun.name, new.name}
