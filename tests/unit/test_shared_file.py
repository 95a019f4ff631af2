"""The shared file: where it lies, and who may take it for the one that is meant."""

import errno
import os
import resource
import tempfile
from pathlib import Path
from typing import Any

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
@pytest.mark.parametrize("has_nameless", [True, False])
def test_the_file_has_no_name_and_never_had_one_where_the_disk_can_do_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_nameless: bool
) -> None:
    monkeypatch.setenv(DATA_ROOT_VARIABLE, str(tmp_path))
    named, make, open_file = list[str](), tempfile.mkstemp, os.open

    def make_named(**options: Any) -> tuple[int, str]:
        descriptor, path = make(**options)
        named.append(path)
        return descriptor, path

    def open_named(path: str, flags: int, *mode: int) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, "as a disk of a network says")
        return open_file(path, flags, *mode)

    monkeypatch.setattr(tempfile, "mkstemp", make_named)
    if has_nameless:
        try:
            os.close(os.open(tmp_path, os.O_TMPFILE | os.O_RDWR))
        except OSError:
            pytest.skip("this disk has no files without a name")
    else:
        monkeypatch.setattr(os, "open", open_named)
    descriptor = open_shared(10, matter="file", group=ProcessGroup.alone(torch.device("cpu")))
    assert descriptor is not None
    assert len(named) == (not has_nameless)
    assert list(tmp_path.iterdir()) == []
    assert os.fstat(descriptor).st_size == 10
    os.close(descriptor)


@pytest.mark.usefixtures("_linux")
def test_a_file_that_may_not_become_so_long_leaves_nothing_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DATA_ROOT_VARIABLE, str(tmp_path))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = os.listdir("/proc/self/fd")
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, hard))
    try:
        assert open_shared(2**21, matter="file", group=ProcessGroup.alone(torch.device("cpu"))) is None
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert os.listdir("/proc/self/fd") == before


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
