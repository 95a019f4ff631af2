"""`python -m trainer.bench`: the trainer beside the plain loop, on tiny sizes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.distributed.runs import start
from trainer.bench.lines import lines
from trainer.bench.workload import Workload, write_images
from trainer.data.cifar import read_batches
from trainer.run_dir import EXIT_USAGE

TINY = (
    "--synthetic",
    "--device",
    "cpu",
    "--model",
    "squeezenet1_1",
    "--samples",
    "20",
    "--batch",
    "8",
    "--epochs",
    "2",
)


def bench(*arguments: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    return start(sys.executable, "-m", "trainer.bench", *arguments, "--workers", "0", folder=folder)


def test_a_line_has_the_epochs_of_the_trainer_and_of_the_plain_loop_from_one_run(tmp_path: Path) -> None:
    printed = bench(*TINY, "--only", "DDP on 2", "--only", "DataParallel", "--json", folder=tmp_path)

    assert printed.returncode == 0, printed.stderr
    report = json.loads(printed.stdout)
    assert report["title"].startswith("squeezenet1_1 on 20 drawn images, batch 8, 2 epochs; ")
    absent, ddp = report["lines"]
    assert (absent["line"]["missing"], absent["ours"], absent["ratio"]) == ("not on the CPU", None, None)
    assert ddp["line"]["name"] == "DDP on 2"
    (_, ours_s), (_, plain_s) = ddp["ours"]["epochs_s"], ddp["plain_loop"]["epochs_s"]
    assert ddp["ratio"] == pytest.approx(ours_s / plain_s)
    for loop in ("ours", "plain_loop"):  # of the four validation images
        assert any(ddp[loop]["accuracy"] == pytest.approx(right / 4) for right in range(5))
    assert list(tmp_path.iterdir()) == []
    told = f"DDP on 2: {ours_s:.2f} s/epoch, the plain loop {plain_s:.2f} s/epoch"
    assert printed.stderr.splitlines() == [
        f"{report['title'].partition(';')[0]}; lines: DataParallel, DDP on 2",
        "DataParallel: not on the CPU",
        *("DDP on 2: RankZero …", "DDP on 2: the plain loop …", told),
    ]


def test_without_the_files_of_cifar10_the_way_out_is_told(tmp_path: Path) -> None:
    refused = bench("--device", "cpu", folder=tmp_path)
    assert refused.returncode == EXIT_USAGE
    assert "CIFAR-10 is not on this host" in refused.stderr
    assert "--synthetic" in refused.stderr


def test_a_line_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    refused = bench(*TINY, "--only", "DDP on 3", folder=tmp_path)
    assert refused.returncode == EXIT_USAGE
    assert "no line 'DDP on 3' here; there are 'one device', 'DataParallel', 'DDP on 2'" in refused.stderr


def test_lines_for_which_there_are_too_few_gpus_say_so() -> None:
    missing = {line.name: line.missing for line in lines("cuda", gpus=2)}
    assert missing == {
        "one device": "",
        "one device, bf16": "",
        "DataParallel on 2": "",
        "DDP on 2": "",
        "DDP on 4": "needs 4 GPUs, and there are 2",
        "DDP on 2, fp16": "",
    }


def test_the_first_images_of_cifar10_are_taken_where_fewer_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = Workload(model="resnet18", samples=40, is_synthetic=True, epochs=2, batch=8)
    published = write_images(drawn, tmp_path / "root")
    monkeypatch.setenv("RANKZERO_DATA_ROOT", str(published.parent))

    few = write_images(Workload(model="resnet18", samples=10, is_synthetic=False, epochs=2, batch=8), tmp_path / "few")

    whole, labels = read_batches([published / f"data_batch_{number}" for number in range(1, 6)], labels="labels")
    taken, of_taken = read_batches([few / f"data_batch_{number}" for number in range(1, 6)], labels="labels")
    assert len(taken) == 10
    assert sorted(of_taken.tolist()) == sorted(labels[:10].tolist())
    assert {image.numpy().tobytes() for image in taken} == {image.numpy().tobytes() for image in whole[:10]}
