"""The pixel cache: what one process has decoded, every other finds; a full disk or none costs no run."""

import multiprocessing
import os
import resource
import sys
import tempfile
from pathlib import Path

import pytest
import torch

from trainer.data.known import DATA_ROOT_VARIABLE
from trainer.data.pixel_cache import PixelCache, file_bytes, open_cache
from trainer.process_group import ProcessGroup

ALONE = ProcessGroup.alone(torch.device("cpu"))
IMAGE = torch.arange(3 * 8 * 8, dtype=torch.uint8).view(3, 8, 8)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the cache's file is created."""
    monkeypatch.setenv(DATA_ROOT_VARIABLE, str(tmp_path / "data"))
    return tmp_path / "data"


def opened(slots: int = 10) -> PixelCache:
    cache, note = open_cache(slots, size=8, budget_gb=1, group=ALONE)
    assert cache is not None
    assert note == ""
    return cache


def test_a_slot_is_empty_until_it_is_written_and_then_has_its_image() -> None:
    cache = opened()
    assert cache.read(3) is None
    cache.write(3, IMAGE)
    found = cache.read(3)
    assert found is not None
    assert torch.equal(found, IMAGE)
    assert cache.read(2) is None
    assert cache.read(4) is None


def test_what_is_done_to_an_image_leaves_the_cache_as_it_is() -> None:
    cache = opened()
    cache.write(0, IMAGE)
    for _ in range(2):
        found = cache.read(0)
        assert found is not None
        assert torch.equal(found, IMAGE)
        found.zero_()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the other ranks find the file by its name first")
def test_its_file_has_no_name_from_the_start(folder: Path) -> None:
    cache = opened()
    cache.write(0, IMAGE)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")  # Python 3.12 warns of torch's idle threads
def test_a_loader_process_shares_it_however_it_is_started(method: str) -> None:
    cache = opened()
    cache.write(1, IMAGE)
    context = multiprocessing.get_context(method)
    process = context.Process(target=_copy, args=(cache, 1, 7))  # type: ignore[attr-defined]  # every context has it
    process.start()
    process.join()
    assert process.exitcode == 0
    found = cache.read(7)
    assert found is not None
    assert torch.equal(found, IMAGE)


def _copy(cache: PixelCache, source: int, target: int) -> None:
    image = cache.read(source)
    assert image is not None
    cache.write(target, image)


def test_a_disk_that_fills_up_ends_the_caching_and_nothing_else() -> None:
    cache = opened()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes(10, 8) - 5 * IMAGE.numel(), limits[1]))
    try:
        cache.write(0, IMAGE)
        cache.write(7, IMAGE)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    cache.write(1, IMAGE)
    assert [cache.read(slot) is not None for slot in (0, 7, 1)] == [True, False, False]


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="no folder here is in memory for certain")
def test_to_look_for_images_takes_no_room_of_a_file_in_memory() -> None:
    descriptor, path = tempfile.mkstemp(dir="/dev/shm")
    os.unlink(path)
    os.truncate(descriptor, file_bytes(10, 8))
    cache = PixelCache(descriptor, slots=10, size=8)
    assert cache.read(3) is None
    assert cache.filled() == 0
    assert os.fstat(descriptor).st_blocks == 0


def test_an_image_of_which_not_all_can_be_read_is_none() -> None:
    descriptor, path = tempfile.mkstemp()
    os.unlink(path)
    os.truncate(descriptor, file_bytes(10, 8))
    cache = PixelCache(descriptor, slots=10, size=8)
    cache.write(9, IMAGE)
    assert cache.read(9) is not None
    os.truncate(descriptor, file_bytes(10, 8) - 1)
    assert cache.read(9) is None


def test_a_write_that_is_cut_short_is_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.pwrite
    monkeypatch.setattr("os.pwrite", lambda descriptor, content, offset: write(descriptor, content[:50], offset))
    cache = opened()
    cache.write(1, IMAGE)
    found = cache.read(1)
    assert found is not None
    assert torch.equal(found, IMAGE)


def test_a_set_that_exceeds_the_budget_is_told_and_not_cached() -> None:
    budget_gb = file_bytes(10, 8) / 10**9
    assert open_cache(10, size=8, budget_gb=budget_gb, group=ALONE)[0] is not None
    cache, note = open_cache(11, size=8, budget_gb=budget_gb, group=ALONE)
    assert cache is None
    assert "more than cache_gb" in note


def test_no_budget_and_no_images_are_no_cache_and_nothing_to_tell() -> None:
    assert open_cache(10, size=8, budget_gb=0, group=ALONE) == (None, "")
    assert open_cache(0, size=8, budget_gb=1, group=ALONE) == (None, "")


def test_without_a_disk_that_has_room_it_is_told() -> None:
    cache, note = open_cache(10**9, size=224, budget_gb=10**9, group=ALONE)
    assert cache is None
    assert "no disk here has twice that room" in note


def test_a_data_root_that_cannot_be_written_to_is_left_for_the_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(DATA_ROOT_VARIABLE, str(tmp_path / "file" / "data"))
    opened().write(0, IMAGE)
