"""Programs of the user's own, run as ranks: what they find, what becomes of their reports, how their ends are told."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.distributed.runs import Run, records, start
from tests.waiting import wait_until
from trainer.journal import CheckpointSaved, Completed, Metrics, Started
from trainer.run_dir import RUN_DIR_VARIABLE, RunConfig, RunDir

# Written without torch where none is needed: such a rank is there in an instant.


def prepare(folder: Path, program: str, *, ranks: int = 2, **options: Any) -> RunDir:
    """Write a program and make a run directory for it."""
    script = folder / "program.py"
    script.write_text(program)
    run_dir = RunDir(folder / "run")
    train = {"recipe": "script", "options": {"script": str(script), **options}}
    run_dir.create(RunConfig.model_validate({"train": train, "devices": ["cpu"] * ranks}))
    return run_dir


def words(run_dir: RunDir, rank: int) -> Any:
    """What a program has printed last, as JSON."""
    return json.loads(run_dir.log(rank).read_text().splitlines()[-1])


def test_a_program_finds_what_torchrun_would_give_it_and_its_reports_reach_the_journal(tmp_path: Path) -> None:
    (tmp_path / "trainer.py").write_text("class Trainer: name = 'my own'\n")
    (tmp_path / "elsewhere").mkdir()
    program = """
import atexit, json, os, subprocess, sys, threading
import rankzero
import wandb
from trainer import Trainer

rankzero.report(step=1, loss=0.5, epoch=2)
wandb.init(project="digits", config={"lr": 0.1})
wandb.log({"val/accuracy": 0.75, "picture": "no number"}, step=7)
file = os.path.abspath(f"weights-{os.environ['RANK']}.pt")
open(file, "w").write("weights")
rankzero.checkpoint("weights-0.pt", step=7, best=True, loss=float("inf"))
open("weights-0.pt.later", "w").close()
subprocess.run([sys.executable, "-c", "import rankzero; rankzero.report(step=8, loss=0.25)"], check=True)
threading.Thread(target=lambda: rankzero.report(step=9, loss=0.2), daemon=False).start()
atexit.register(lambda: rankzero.report(step=10, loss=0.1))
names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "CUDA_VISIBLE_DEVICES", "COLOUR")
print(json.dumps([
    Trainer.name, __name__, sys.argv[1:], os.getcwd(), sys.path[0], "torch" in sys.modules,
    {name: os.environ.get(name) for name in names},
]))
sys.exit()
"""
    run_dir = prepare(
        tmp_path, program, args=["--epochs", 3], cwd=str(tmp_path / "elsewhere"), env={"COLOUR": "red"}, wandb_shim=True
    )
    Run(run_dir).succeed()

    for rank in (0, 1):
        assert words(run_dir, rank) == [
            *("my own", "__main__", ["--epochs", "3"], str(tmp_path / "elsewhere"), str(tmp_path), False),
            {
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": "2",
                "LOCAL_WORLD_SIZE": "2",
                "CUDA_VISIBLE_DEVICES": "",
                "COLOUR": "red",
            },
        ]
    started, *middle, completed = records(run_dir)
    assert isinstance(started, Started)
    assert (started.world_size, started.batch, started.total_steps) == (2, None, None)
    told = [(each.step, each.values) for each in middle if isinstance(each, Metrics)]
    assert sorted(told) == [
        *((1, {"loss": 0.5}), (7, {"val/accuracy": 0.75})),
        *((8, {"loss": 0.25}), (9, {"loss": 0.2}), (10, {"loss": 0.1})),
    ]
    (checkpoint,) = [each for each in middle if isinstance(each, CheckpointSaved)]
    file = tmp_path / "elsewhere" / "weights-0.pt"
    assert (checkpoint.path, checkpoint.size_bytes, checkpoint.best) == (str(file), len("weights"), True)
    assert checkpoint.values == {"loss": None}
    assert isinstance(completed, Completed)
    assert (completed.step, completed.best_checkpoint) == (10, str(file))
    progress = run_dir.read_progress(0)
    assert progress is not None
    assert (progress.phase, progress.step) == ("finished", 10)
    assert [record.seq for record in records(run_dir)] == list(range(len(middle) + 2))


def test_a_module_runs_as_python_m_runs_it(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(
        "import json, os, sys\nfrom package import name\nprint(json.dumps([name.value, sys.argv[1:], os.getcwd()]))\n"
    )
    (package / "name.py").write_text("value = 'found'\n")
    (tmp_path / "train.yaml").write_text("recipe: script\noptions: {module: package, args: [a]}\ndevice: cpu\n")
    done = start(sys.executable, "-m", "trainer", "train.yaml", "--output", "run", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert words(RunDir(tmp_path / "run"), 0) == ["found", ["a"], str(tmp_path)]


RENDEZVOUS = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
total = torch.tensor([rank + 1])
dist.all_reduce(total)
assert total.item() == dist.get_world_size() * (dist.get_world_size() + 1) // 2
"""


def test_the_first_rank_at_fault_is_told_of_with_the_programs_own_traceback(tmp_path: Path) -> None:
    program = f"{RENDEZVOUS}\ndef train():\n    if rank == 1:\n        raise LookupError('nothing here')\n"
    run_dir = prepare(tmp_path, program + "    dist.all_reduce(total)\n\ntrain()\n")
    run = Run(run_dir)
    assert run.wait() == 1, run.output()
    error = run_dir.read_error()
    assert error is not None
    assert (error.cause, error.rank, error.message) == ("exception", 1, "LookupError: nothing here")
    assert error.traceback is not None
    first, second, third = error.traceback.splitlines()[:3]
    assert (first, second.strip()) == (
        "Traceback (most recent call last):",
        f'File "{tmp_path / "program.py"}", line 14, in <module>',
    )
    assert third.strip() == "train()"
    assert "nothing here" in run_dir.log(1).read_text()


def test_one_rank_alone_has_a_process_group_as_well(tmp_path: Path) -> None:
    Run(prepare(tmp_path, f"{RENDEZVOUS}\ndist.destroy_process_group()\n", ranks=1)).succeed()


@pytest.mark.parametrize(
    ("end", "status", "message"),
    [
        ("sys.exit(3)", 3, "the program ended with exit status 3"),
        ("sys.exit('no data')", 1, "the program ended with exit status 1: no data"),
        ("os._exit(4)", 4, "rank 0 ended with exit status 4"),
        ("os._exit(0)", 0, "rank 0 ended (exit status 0) before the run was complete"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", None, "rank 0 was ended by SIGSEGV"),
    ],
)
def test_a_rank_that_ends_otherwise_is_told_of(end: str, status: int | None, message: str, tmp_path: Path) -> None:
    run_dir = prepare(tmp_path, f"import os, signal, sys\n{end}\n", ranks=1)
    run = Run(run_dir)
    assert run.wait() == 1, run.output()
    error = run_dir.read_error()
    assert error is not None
    assert (error.rank, error.exit_code, error.message[: len(message)]) == (0, status, message)
    assert run_dir.completed() is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"script": "/missing/train.py"},
            "options.script: there is no file /missing/train.py on this host",
        ),
        ({"script": None, "module": "missing"}, "options.module: there is no module missing to be found"),
        ({"cwd": "/missing"}, "options.cwd: /missing cannot be entered"),
    ],
)
def test_what_is_not_on_the_host_that_trains_is_the_configurations_fault(
    options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    run_dir = prepare(tmp_path, "", ranks=1, **options)
    assert Run(run_dir).wait() == 2
    error = run_dir.read_error()
    assert error is not None
    assert (error.cause, error.message[: len(message)]) == ("config", message)


def test_a_syntax_error_is_told_with_its_line_and_a_missing_program_before_anything_starts(tmp_path: Path) -> None:
    run_dir = prepare(tmp_path, "print('fine')\nthis is\n", ranks=1)
    assert Run(run_dir).wait() == 1
    error = run_dir.read_error()
    assert error is not None
    assert error.message == "SyntaxError: invalid syntax (program.py, line 2)"
    assert error.traceback is not None
    assert "runpy" not in error.traceback

    (tmp_path / "train.yaml").write_text("recipe: script\noptions: {script: missing.py}\ndevice: cpu\n")
    done = start(sys.executable, "-m", "trainer", "train.yaml", folder=tmp_path)
    assert (done.returncode, done.stderr) == (2, f"error: options.script: there is no file {tmp_path / 'missing.py'}\n")
    assert not (tmp_path / "runs").exists()


SAVES_WHEN_STOPPED = """
import os, signal, sys, time
import rankzero

begun = rankzero.resume_path()
if begun is not None:
    print(begun.read_text())
    rankzero.report(step=6, loss=0.0)
    sys.exit()

def save(*_):
    open("last.txt", "w").write("the state")
    rankzero.checkpoint("last.txt", step=5)
    sys.exit(0)

if os.environ["RANK"] == "0":
    signal.signal(signal.SIGTERM, save)
rankzero.report(step=4, loss=1.0)
open(f"there-{os.environ['RANK']}", "w").close()
time.sleep(600)
"""


def test_a_program_that_is_stopped_may_save_and_go_on_from_there(tmp_path: Path) -> None:
    run_dir = prepare(tmp_path, SAVES_WHEN_STOPPED)
    run = Run(run_dir)
    wait_until(lambda: len(list(tmp_path.glob("there-*"))) == 2, timeout_s=30, what="both ranks")
    run.process.send_signal(signal.SIGTERM)
    assert run.wait() == 75, run.output()
    error = run_dir.read_error()
    assert error is not None
    assert error.message == f"stopped by SIGTERM; the last checkpoint is {tmp_path / 'last.txt'}"
    assert run_dir.completed() is None

    Run(run_dir).succeed()
    assert [run_dir.log(rank).read_text().splitlines()[-1] for rank in (0, 1)] == ["the state"] * 2
    completed = run_dir.completed()
    assert completed is not None
    assert completed.step == 6


def test_a_file_that_was_written_over_since_is_not_resumed_from(tmp_path: Path) -> None:
    program = (
        "import rankzero, sys\n"
        "if rankzero.resume_path():\n"
        "    sys.exit(rankzero.resume_path().name)\n"
        "for name in ('first', 'second'):\n"
        "    open(name, 'w').write(name)\n"
        "    rankzero.checkpoint(name, step=1)\n"
        "open('second', 'w').write('other')\n"
        "sys.exit('once more')\n"
    )
    run_dir = prepare(tmp_path, program, ranks=1)
    for ending in ("once more", "first"):
        assert Run(run_dir).wait() == 1
        error = run_dir.read_error()
        assert error is not None
        assert error.message.endswith(ending)


def test_torchrun_is_told_to_start_the_program_itself(tmp_path: Path) -> None:
    (tmp_path / "train.yaml").write_text("recipe: script\noptions: {script: mine.py}\n")
    environment = {name: value for name, value in os.environ.items() if name != RUN_DIR_VARIABLE}
    done = subprocess.run(
        [sys.executable, "-m", "trainer", "train.yaml"],
        cwd=tmp_path,
        env=environment | {"RANK": "0", "WORLD_SIZE": "2"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "`torchrun … mine.py`" in done.stderr


def test_the_example_runs_under_torchrun_as_it_is(tmp_path: Path) -> None:
    example = Path(__file__).parents[2] / "examples" / "ddp_script.py"
    torchrun = Path(sys.executable).with_name("torchrun")
    done = start(str(torchrun), "--nproc-per-node", "1", str(example), "--epochs", "1", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.rglob("*.*")] == ["epoch-1.pt"]
