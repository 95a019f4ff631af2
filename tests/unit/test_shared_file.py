"""The shared file: where it lies, and who may take it for the one that is meant."""

import os
import tempfile
from pathlib import Path

import pytest
import torch
from torch._C._distributed_c10d import HashStore

from trainer.data.known import DATA_ROOT_VARIABLE
from trainer.data.shared_file import open_shared
from trainer.environment import RankEnvironment
from trainer.process_group import ProcessGroup

MEMORY = Path("/dev/shm")


def two_ranks() -> list[ProcessGroup]:
    store = HashStore()
    environments = [
        RankEnvironment(rank=rank, local_rank=rank, world_size=2, local_world_size=2, node_rank=0) for rank in (0, 1)
    ]
    return [ProcessGroup(environment, torch.device("cpu"), store) for environment in environments]


@pytest.fixture
def _linux() -> None:
    if not Path("/proc/self/mountinfo").exists():
        pytest.skip("only Linux names open files and the kinds of file systems")


@pytest.mark.usefixtures("_linux")
def test_ranks_of_a_host_share_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DATA_ROOT_VARIABLE, str(tmp_path))
    first, second = (open_shared(10, matter="file", group=group) for group in two_ranks())
    assert first is not None
    assert second is not None
    os.pwrite(first, b"word", 3)
    assert os.pread(second, 10, 0) == b"\0\0\0word\0\0\0"
    os.close(first)
    os.close(second)


@pytest.mark.usefixtures("_linux")
def test_another_file_at_its_place_is_not_taken_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where each rank has a container of its own."""
    monkeypatch.setenv(DATA_ROOT_VARIABLE, str(tmp_path))
    first_rank, second_rank = two_ranks()
    descriptor = open_shared(10, matter="file", group=first_rank)
    assert descriptor is not None
    with (tmp_path / "other").open("wb") as other:
        os.dup2(other.fileno(), descriptor)
    assert open_shared(10, matter="file", group=second_rank) is None
    assert (tmp_path / "other").read_bytes() == b""
    os.close(descriptor)
    assert open_shared(10, matter="file", group=second_rank) is None


@pytest.mark.usefixtures("_linux")
@pytest.mark.skipif(not os.access(MEMORY, os.W_OK), reason="there is no file system in memory here")
def test_memory_is_taken_only_where_there_is_no_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = ProcessGroup.alone(torch.device("cpu"))
    in_memory = os.stat(MEMORY).st_dev
    monkeypatch.setenv(DATA_ROOT_VARIABLE, str(MEMORY))
    for temporary, expected in ((tmp_path, os.stat(tmp_path).st_dev), (MEMORY, in_memory)):
        monkeypatch.setattr(tempfile, "tempdir", str(temporary))
        descriptor = open_shared(10, matter="file", group=alone)
        assert descriptor is not None
        assert os.fstat(descriptor).st_dev == expected
        os.close(descriptor)
