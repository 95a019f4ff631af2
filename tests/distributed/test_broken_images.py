"""Images on two ranks: broken ones are left out on all alike, the others are decoded once for both."""

import os
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch._C._distributed_c10d import FileStore
from torch.multiprocessing.spawn import start_processes

from tests.distributed.runs import Run, draw_images, epochs, last_weights, prepare, records
from trainer.config import TrainConfig
from trainer.data.decoded import open_images
from trainer.environment import RankEnvironment
from trainer.journal import Log
from trainer.process_group import ProcessGroup

OPTIONS: dict[str, Any] = {"epochs": 2, "batch": 8, "num_workers": 1, "on_bad_image": "skip"}


def cut(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 3])


def test_broken_files_are_left_out_and_two_ranks_with_a_cache_train_what_one_does_without(
    tmp_path: Path, data_root: Path
) -> None:
    folder = draw_images(tmp_path / "images", train=40, val=8)
    cut(folder / "train" / "class0" / "0036.png")
    before = list(data_root.iterdir())
    shared = prepare(tmp_path / "two", data=folder, **OPTIONS)
    alone = prepare(tmp_path / "one", data=folder, ranks=1, cache_gb=0, **OPTIONS)
    for run_dir in (shared, alone):
        Run(run_dir).succeed()
        said = [record.message for record in records(run_dir) if isinstance(record, Log)]
        assert any("1 of 48 images cannot be used and are left out" in message for message in said)
        assert any("39 training and 8 validation samples" in message for message in said)
        assert [record.step for record in epochs(run_dir)] == [5, 10]
    for name, weights in last_weights(shared).items():
        torch.testing.assert_close(weights, last_weights(alone)[name], rtol=1e-4, atol=1e-5)
    assert list(data_root.iterdir()) == before


@pytest.mark.skipif(sys.platform == "darwin", reason="a forked process cannot compute on macOS")
def test_what_one_rank_has_decoded_no_other_reads_again(tmp_path: Path) -> None:
    images = tmp_path / "images"
    images.mkdir()
    random = np.random.default_rng(0)
    for number in range(1, 41):
        Image.fromarray(random.integers(0, 256, (24, 32, 3), dtype=np.uint8)).save(images / f"{number:02}.jpg")
    cut(images / "37.jpg")
    with warnings.catch_warnings():
        # Python 3.12 warns of threads, such as those of torch, which the ranks make no use of.
        warnings.simplefilter("ignore", DeprecationWarning)
        start_processes(_read_all, (images, tmp_path), nprocs=3, start_method="fork")  # type: ignore[no-untyped-call]  # torch's own
    pixels = [torch.load(tmp_path / f"{rank}.pt") for rank in range(3)]
    assert pixels[0].shape == (39, 3, 16, 16)
    assert torch.equal(pixels[0], pixels[1])
    assert torch.equal(pixels[0], pixels[2])


def _read_all(rank: int, images: Path, folder: Path) -> None:
    """As one of three ranks of a host, read all images once their files are gone."""
    torch.set_num_threads(1)  # a forked process has none of the threads that torch would share work with
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    environment = RankEnvironment(rank=rank, local_rank=rank, world_size=3, local_world_size=3)
    store = FileStore(str(folder / "store"), 3)
    group = ProcessGroup.join(environment, store, device="cpu", simulated=False, timeout_s=60)
    config = TrainConfig(model="resnet18", data=str(images), image_size=16, num_workers=0, on_bad_image="skip")
    opened = open_images(sorted(images.iterdir()), config=config, group=group)
    assert opened.broken == {images / "37.jpg"}
    group.wait_for_all()
    if rank == 0:
        for path in images.iterdir():
            path.unlink()
    group.wait_for_all()
    source = opened.sources[0]
    torch.save(torch.stack([source[index] for index in range(len(source))]), folder / f"{rank}.pt")
    group.wait_for_all()
    group.leave()
