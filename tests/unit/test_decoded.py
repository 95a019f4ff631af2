"""Decoded files: the same pixels with the cache and without, and broken files found before training."""

import resource
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from trainer.config import TrainConfig
from trainer.data.decoded import OpenedImages, open_images
from trainer.data.known import DATA_ROOT_VARIABLE
from trainer.data.pixel_cache import PixelCache, file_bytes, open_cache
from trainer.errors import DataError
from trainer.process_group import ProcessGroup

CACHED, UNCACHED = {"cache_gb": 1}, {"cache_gb": 0}


@pytest.fixture(autouse=True)
def _own_data_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DATA_ROOT_VARIABLE, str(tmp_path / "data"))


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    """Forty JPEGs."""
    random = np.random.default_rng(0)
    paths = [tmp_path / f"{number:02}.jpg" for number in range(1, 41)]
    for path in paths:
        Image.fromarray(random.integers(0, 256, (24, 32, 3), dtype=np.uint8)).save(path)
    return paths


def cut(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 3])


def opened(*sets: list[Path], **options: object) -> OpenedImages:
    config = TrainConfig.model_validate({"model": "resnet18", "data": "./x", "image_size": 16} | options)
    return open_images(*sets, config=config, group=ProcessGroup.alone(torch.device("cpu")))


def test_pixels_are_the_same_with_the_cache_and_without(paths: list[Path]) -> None:
    (cached,), (uncached,) = (opened(paths, num_workers=0, **options).sources for options in (CACHED, UNCACHED))
    for index in range(len(paths)):
        assert torch.equal(cached[index], uncached[index])


def test_modes_of_every_kind_in_one_folder_come_as_one_batch(tmp_path: Path) -> None:
    paths = []
    for mode in ("L", "P", "LA", "RGBA", "I;16", "1", "RGB"):
        paths.append(tmp_path / f"{mode}.png")
        Image.new(mode, (7, 5)).save(paths[-1])
    (source,) = opened(paths, num_workers=0, **CACHED).sources
    batch = torch.stack([source[index] for index in range(len(source))])
    assert (batch.shape, batch.dtype) == ((7, 3, 16, 16), torch.uint8)


def test_with_a_cache_every_file_is_decoded_once_and_before_training(paths: list[Path]) -> None:
    train, val = opened(paths[:30], paths[30:], num_workers=2, **CACHED).sources
    for path in paths:
        path.unlink()
    assert torch.stack([train[index] for index in range(30)]).shape == (30, 3, 16, 16)
    assert val[9].shape == (3, 16, 16)


def test_a_disk_with_room_for_some_is_told_and_the_others_are_decoded_anew(
    paths: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    (whole,) = opened(paths, num_workers=0, **UNCACHED).sources
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def open_then_fill(*args: Any, **options: Any) -> tuple[PixelCache | None, str]:
        found = open_cache(*args, **options)
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes(40, 16) - 10 * 3 * 16 * 16, limits[1]))
        return found

    monkeypatch.setattr("trainer.data.decoded.open_cache", open_then_fill)
    try:
        images = opened(paths, num_workers=0, **CACHED)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert images.notes == ("the disk had room for 30 decoded images: the others are decoded anew in each epoch",)
    assert all(torch.equal(images.sources[0][index], whole[index]) for index in range(40))


def test_a_file_that_is_gone_in_mid_run_is_named(paths: list[Path]) -> None:
    (source,) = opened(paths, num_workers=0, **UNCACHED).sources
    paths[5].unlink()
    with pytest.raises(DataError, match=r"06\.jpg"):
        source[5]


@pytest.mark.parametrize("options", [CACHED, UNCACHED], ids=["cached", "uncached"])
@pytest.mark.parametrize("workers", [0, 2])
def test_a_jpeg_cut_at_a_third_is_named_before_training(
    workers: int, options: dict[str, object], paths: list[Path]
) -> None:
    cut(paths[36])
    with pytest.raises(DataError, match=r"1 of 40 images cannot be used .*/37\.jpg: not a readable image"):
        opened(paths[:30], paths[30:], num_workers=workers, **options)


def test_of_many_broken_files_ten_are_named_and_all_are_counted(paths: list[Path]) -> None:
    for path in paths[:12]:
        cut(path)
    with pytest.raises(DataError, match=r"12 of 40 images .*/10\.jpg.*; and 2 more$") as error:
        opened(paths, num_workers=0)
    assert "/11.jpg" not in str(error.value)


@pytest.mark.parametrize("options", [CACHED, UNCACHED], ids=["cached", "uncached"])
def test_broken_files_are_skipped_with_a_warning_and_the_others_keep_their_order(
    options: dict[str, object], paths: list[Path]
) -> None:
    whole = opened(paths[:30], paths[30:], num_workers=0, **UNCACHED)
    for number in (3, 36):
        cut(paths[number])
    images = opened(paths[:30], paths[30:], num_workers=0, on_bad_image="skip", **options)
    assert images.broken == {paths[3], paths[36]}
    assert len(images.warnings) == 1
    assert "2 of 40 images cannot be used and are left out" in images.warnings[0]
    train, val = images.sources
    assert train.paths == (*paths[:3], *paths[4:30])
    assert torch.equal(train[3], whole.sources[0][4])
    assert torch.equal(val[6], whole.sources[1][7])


def test_damage_in_the_midst_is_found_where_broken_files_are_skipped(paths: list[Path]) -> None:
    path = paths[7].with_suffix(".png")
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)).save(path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    assert opened([path, paths[0]], num_workers=0, on_bad_image="skip", **UNCACHED).broken == {path}


def test_a_set_of_which_nothing_can_be_read_is_an_error(paths: list[Path]) -> None:
    for path in paths[30:]:
        cut(path)
    with pytest.raises(DataError, match="none of 10 images can be read"):
        opened(paths[:30], paths[30:], num_workers=0, on_bad_image="skip")
