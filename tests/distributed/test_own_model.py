"""A script's own model and callbacks: taken into the ranks, and handed back with the best weights."""

import json
import os
import sys
from pathlib import Path

import pytest

from tests.children import start_child
from tests.distributed.runs import RUN_S, draw_images, start
from tests.waiting import wait_until
from trainer.data.image_folder import open_image_folder
from trainer.error_report import ErrorReport
from trainer.errors import Cause, CheckpointError
from trainer.journal import read_records
from trainer.reload import load_model
from trainer.run_dir import EXIT_USAGE, RunDir
from trainer.seeds import sample_order

OWN = """
import json, os, sys
import torch
import torch.distributed as dist
from torch import nn
from trainer import Callback, train
from trainer.errors import RunFailedError


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.frozen = nn.Conv2d(3, 4, 3, stride=2).requires_grad_(False)
        self.norm = nn.BatchNorm2d(4)
        self.head = nn.Linear(4, 2)

    def forward(self, images):
        return self.head(self.norm(self.frozen(images)).relu().mean((2, 3)))


class Noting(Callback):
    def __init__(self):
        self.epochs = 0

    def on_epoch_end(self, record):
        self.epochs += 1
        with open("noted", "a") as file:
            print(os.environ["RANK"], record.epoch, self.epochs, sys.argv[1:], file=file)


def holds_the_best(model, result):
    best = torch.load(result.best_checkpoint, weights_only=True)["model"]
    own = model.state_dict()
    return own.keys() == best.keys() and all(torch.equal(own[name], best[name]) for name in own)


OPTIONS = {"image_size": 16, "batch": 8, "epochs": 3, "lr": 0.05, "num_workers": 0, "device": "cpu"}
"""


def write_script(folder: Path, *lines: str) -> str:
    (folder / "script.py").write_text(OWN + "\n".join(lines) + "\n")
    return "script.py"


def test_a_scripts_own_model_comes_back_with_the_best_weights_and_callbacks_fire_on_rank_0(
    tmp_path: Path, images: Path
) -> None:
    script = write_script(
        tmp_path,
        "if __name__ == '__main__':",
        "    torch.manual_seed(3)",
        "    net, note = Net().eval(), Noting()",
        "    frozen = net.frozen.weight.clone()",
        f"    data = {os.path.relpath(images, tmp_path)!r}",
        "    run = {'nproc_per_node': 2, 'output': 'run', 'callbacks': [note]}",
        "    result = train(model=net, data=data, **OPTIONS, **run)",
        "    print(holds_the_best(net, result), net.training, torch.equal(net.frozen.weight, frozen))",
        "    print(result.load_model() is net, note.epochs, len(result.epochs))",
    )

    trained = start(sys.executable, script, "an argument", folder=tmp_path)

    assert trained.returncode == 0, trained.stderr
    assert trained.stdout.splitlines() == ["True False True", "True 0 3"]
    assert (tmp_path / "noted").read_text().splitlines() == [
        f"0 {epoch} {epoch} ['an argument']" for epoch in (1, 2, 3)
    ]
    run_dir = RunDir(tmp_path / "run")
    config = run_dir.read_config().train
    assert config.model == "__main__.Net"
    assert Path(config.data).is_absolute()  # the run is continued from any folder
    assert Path(config.data).samefile(images)
    assert not run_dir.call.exists()

    completed = run_dir.completed()
    assert completed is not None
    assert completed.best_checkpoint is not None
    best = Path("run", completed.best_checkpoint)
    refused = start(sys.executable, "-m", "trainer", "evaluate", "run", folder=tmp_path)
    assert refused.returncode == EXIT_USAGE
    assert (
        refused.stderr
        == f"error: evaluate: it takes a checkpoint file, and run is a folder; the best of this run is {best}\n"
    )
    with pytest.raises(CheckpointError, match=r"__main__\.Net is a script's own model.* net\.load_state_dict"):
        load_model(tmp_path / best)


def test_a_call_that_is_not_guarded_gets_one_clear_error_and_no_cascade(tmp_path: Path, images: Path) -> None:
    script = write_script(
        tmp_path,
        "print('imported')",
        f"train(model=Net(), data={str(images)!r}, **OPTIONS, nproc_per_node=2)",
    )

    refused = start(sys.executable, script, folder=tmp_path)

    assert refused.returncode == 1
    *_, last = refused.stderr.strip().splitlines()
    assert "script.py calls train() at its top level" in last
    assert 'put it under `if __name__ == "__main__":`' in last
    assert refused.stdout == "imported\n"
    (run_dir,) = (tmp_path / "runs").iterdir()
    logs = [RunDir(run_dir).log(rank).read_text() for rank in (0, 1)]
    assert all(log.count("imported") <= 1 for log in logs)  # the other may have been ended before


def test_what_a_callback_raises_reaches_the_script_with_its_traceback(tmp_path: Path, images: Path) -> None:
    script = write_script(
        tmp_path,
        "def raising(record):",
        "    if record.kind == 'checkpoint':",
        "        raise LookupError('nowhere')",
        "if __name__ == '__main__':",
        "    try:",
        f"        train(model=Net(), data={str(images)!r}, **OPTIONS, output='run', callbacks=[print, raising])",
        "    except RunFailedError as error:",
        "        print(error.cause, error, error.__notes__[0].count('in raising'))",
    )

    failed = start(sys.executable, script, folder=tmp_path)

    assert failed.stdout == "exception rank 0: LookupError: nowhere (run directory run) 1\n", failed.stderr
    error = RunDir(tmp_path / "run").read_error()
    assert error is not None
    assert (error.cause, error.rank, error.exception) == (Cause.EXCEPTION, 0, "builtins.LookupError")
    assert "kind='started'" in RunDir(tmp_path / "run").log(0).read_text()


@pytest.mark.timeout(300)
def test_under_torchrun_a_script_trains_as_its_ranks_and_keeps_its_process(tmp_path: Path) -> None:
    whole = draw_images(tmp_path / "whole", train=41, val=9)
    broken = draw_images(tmp_path / "broken", train=40, val=9)
    files = open_image_folder(broken, val_fraction=0.1).train
    unreadable = files[sample_order(len(files), seed=0, epoch=0)[1]].path  # in the first step, and rank 1's
    content = unreadable.read_bytes()  # damaged in its midst, where nobody looks beforehand without the cache
    unreadable.write_bytes(content[:100] + bytes(100) + content[200:])
    script = write_script(
        tmp_path,
        "import signal",
        "rank = int(os.environ['RANK'])",
        "torch.manual_seed(rank)  # each has other weights; rank 0's are trained",
        "net, seen = Net(), []",
        "here = sys.excepthook, signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)",
        f"result = train(model=net, data={str(whole)!r}, **OPTIONS, output='whole-run', callbacks=[",
        "    lambda record: seen.append(record.kind)])",
        "told = {'best': holds_the_best(net, result), 'seen': seen, 'metrics': result.values}",
        "try:",
        f"    train(model=net, data={str(broken)!r}, **OPTIONS, cache_gb=0, output='broken-run')",
        "except RunFailedError as error:",
        "    told['error'], told['raised'] = f'{error.cause}: {error}', type(error.__cause__).__name__",
        "there = sys.excepthook, signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)",
        "dist.init_process_group('gloo')",
        "sum = torch.ones(1)",
        "dist.all_reduce(sum)",
        "told |= {'same': here == there, 'sum': sum.item()}",
        "dist.destroy_process_group()",
        "with open(f'told-{rank}.json', 'w') as file:",
        "    json.dump(told, file)",
    )

    torchrun = str(Path(sys.executable).with_name("torchrun"))
    trained = start(torchrun, "--nproc-per-node", "2", script, folder=tmp_path)

    assert trained.returncode == 0, trained.stderr
    told = [json.loads((tmp_path / f"told-{rank}.json").read_text()) for rank in (0, 1)]
    assert [one["best"] for one in told] == [True, True]
    assert told[0]["metrics"] == told[1]["metrics"]
    assert told[0]["seen"][0] == "started"
    assert told[0]["seen"][-1] == "completed"
    assert told[1]["seen"] == []
    assert [(one["same"], one["sum"]) for one in told] == [(True, 2.0)] * 2
    assert "epoch 3/3" in trained.stderr
    assert told[0]["error"] == told[1]["error"]
    assert told[0]["error"].startswith(f"data: {unreadable}")
    assert told[1]["raised"] == "DataError"
    error = ErrorReport.read(tmp_path / "broken-run" / "error.json")
    assert error is not None
    assert (error.rank, error.cause) == (1, Cause.DATA)


def test_a_script_that_torchrun_asks_to_stop_gets_an_error_it_can_catch_on_every_rank(
    tmp_path: Path, images: Path
) -> None:
    script = write_script(
        tmp_path,
        "from trainer.errors import RunInterruptedError",
        "OPTIONS |= {'epochs': 1000, 'num_workers': 1}",
        "try:",
        f"    train(model=Net(), data={str(images)!r}, **OPTIONS, output='run')",
        "except RunInterruptedError as error:",
        "    open(f'told-{os.environ[\"RANK\"]}', 'w').write(str(error))",
    )
    torchrun = str(Path(sys.executable).with_name("torchrun"))
    run_dir = RunDir(tmp_path / "run")
    process = start_child([torchrun, "--nproc-per-node", "2", script], log=tmp_path / "log", folder=tmp_path)

    def trains() -> bool:
        assert process.poll() is None, (tmp_path / "log").read_text()
        return any(record.kind == "epoch" for record in read_records(run_dir.journal))

    try:
        wait_until(trains, timeout_s=RUN_S, what="the first epoch")
    finally:
        process.terminate()
        process.wait(RUN_S)

    told = [(tmp_path / f"told-{rank}").read_text() for rank in (0, 1)]
    assert told[0] == told[1]
    assert told[0].startswith("interrupted after step ")
    error = run_dir.read_error()
    assert error is not None
    assert (error.cause, error.message) == (Cause.INTERRUPTED, told[0])
