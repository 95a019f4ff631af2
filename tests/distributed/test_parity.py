"""`python -m trainer parity`: the proof on a user's own file, as the command prints it."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
import yaml

from tests.children import start_child
from tests.distributed.runs import RUN_S, TINY, draw_images
from tests.waiting import wait_until

HARD: dict[str, Any] = TINY | {"epochs": 2, "batch": 8, "nbs": 16, "augment": ["random_crop", "horizontal_flip"]}
"""Two batches a step, changed images, and an epoch's last step that is short in batches and in samples."""


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """At batch 8 the last batch has three images: of four ranks one has none, and of two they have two and one."""
    return draw_images(tmp_path_factory.mktemp("images"), train=35, val=5)


class Proof:
    """A running `python -m trainer parity`, whose temporary folders are below `folder`."""

    def __init__(self, folder: Path, *arguments: str, device: str = "cpu", **fields: Any) -> None:
        self.temporary = folder / "tmp"
        self.temporary.mkdir(parents=True)
        self.log = folder / "log"
        file = folder / "train.yaml"
        file.write_text(yaml.safe_dump({name: value for name, value in fields.items() if value is not None}))
        self.process = start_child(
            [sys.executable, "-m", "trainer", "parity", str(file), "--device", device, *arguments],
            log=self.log,
            folder=folder,
            environment=os.environ | {"OMP_NUM_THREADS": "1", "TMPDIR": str(self.temporary)},
        )

    def end(self, status: int) -> str:
        """Wait for the end, with this exit status, no folder left behind and no process; return what was printed."""
        try:
            found = self.process.wait(2 * RUN_S)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still going on\n{self.log.read_text()}") from None
        assert found == status, self.log.read_text()
        assert list(self.temporary.glob("rankzero-*")) == []  # torch has a cache of its own there
        assert self.processes() == []
        return self.log.read_text()

    def processes(self) -> list[psutil.Process]:
        """Every living process that has our temporary folder in its environment: launcher and ranks."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get("TMPDIR") == str(self.temporary) and process.status() != "zombie":
                    found.append(process)
            except psutil.Error:
                continue
        return found


def figures(output: str, name: str) -> list[float]:
    return [float(figure) for figure in re.findall(rf"{name} .*?([0-9.]+e[-+][0-9]+)", output)]


@pytest.mark.timeout(300)
def test_a_model_with_batchnorm_trains_the_same_on_one_two_and_four_ranks(tmp_path: Path, images: Path) -> None:
    fields = HARD | {"data": str(images), "model": "resnet18", "dropout": None}
    output = Proof(tmp_path, "--world-sizes", "1,2,4", "--steps", "4", **fields).end(0)

    assert "1 rank: 4 steps, in float64" in output  # an epoch's three, its short last among them, and one more
    assert "The same to 1e-05 on 1, 2, 4 ranks." in output
    assert max(figures(output, "weights and buffers")) <= 1e-5
    assert max(figures(output, "losses")) <= 1e-5
    assert figures(output, "moved")[0] > 1e-3


@pytest.mark.timeout(300)
def test_a_model_without_batchnorm_trains_the_same_in_float32_too(tmp_path: Path, images: Path) -> None:
    fields = HARD | {"data": str(images), "ema": 0.9}
    output = Proof(tmp_path, "--world-sizes", "1,2,4", "--steps", "4", "--float32", **fields).end(0)

    assert "1 rank: 4 steps, in float32" in output
    assert max(figures(output, "weights and buffers")) <= 1e-5


@pytest.mark.timeout(300)
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_a_model_with_batchnorm_trains_the_same_on_one_gpu_and_on_two(tmp_path: Path, images: Path) -> None:
    fields = HARD | {"data": str(images), "model": "resnet18", "dropout": None}
    output = Proof(tmp_path, "--world-sizes", "1,2", "--steps", "4", device="0,1", **fields).end(0)

    assert max(figures(output, "weights and buffers")) <= 1e-5


@pytest.mark.timeout(300)
def test_batchnorm_that_is_not_synchronized_is_found_and_named(tmp_path: Path, images: Path) -> None:
    fields = HARD | {"data": str(images), "model": "resnet18", "dropout": None, "sync_bn": False}
    output = Proof(tmp_path, "--world-sizes", "1,2", "--steps", "1", **fields).end(1)

    assert "2 ranks: NOT the same" in output
    assert "- BatchNorm (first: bn1): with sync_bn off" in output
    assert "losses more than 1e-05 apart from step 1 on" in output


def test_a_world_size_that_does_not_divide_the_batch_is_a_command_that_cannot_be_run(tmp_path: Path) -> None:
    output = Proof(tmp_path, "--world-sizes", "1,3", **TINY, data="./nowhere", batch=8).end(2)

    assert "batch 8 does not divide among 3 ranks; of 1 to 3, it does among 1, 2" in output


def test_ctrl_c_ends_the_proof_as_interrupted_and_leaves_nothing(tmp_path: Path, images: Path) -> None:
    fields = HARD | {"data": str(images), "epochs": 1000}
    proof = Proof(tmp_path, "--world-sizes", "2,1", "--steps", "1000", **fields)
    wait_until(lambda: len(proof.processes()) == 3, timeout_s=RUN_S, what=lambda: f"ranks\n{proof.log.read_text()}")
    proof.process.send_signal(signal.SIGINT)

    assert "interrupted: stopped in the run on 2 ranks" in proof.end(75)
