"""Files beneath a folder: what a link, a step up or another kind of file leads to is neither opened nor removed."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from jobs.beneath import open_file, remove_file

SECRET = b"not for anybody"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with a file two levels below; beside it, one with what nobody is to read."""
    (tmp_path / "root" / "job" / "run").mkdir(parents=True)
    (tmp_path / "root" / "job" / "run" / "last.pt").write_bytes(b"weights")
    (tmp_path / "outside" / "run").mkdir(parents=True)
    (tmp_path / "outside" / "run" / "last.pt").write_bytes(SECRET)
    return tmp_path / "root"


def test_a_file_is_read_and_removed_where_it_lies(root: Path) -> None:
    path = root / "job" / "run" / "last.pt"
    with open_file(str(root), str(path)) as file:
        assert file.read() == b"weights"
    remove_file(str(root), str(path))
    assert not path.exists()
    remove_file(str(root), str(path))  # it is gone already
    remove_file(str(root), str(root / "no" / "folder" / "last.pt"))


def test_the_folder_itself_may_be_reached_by_a_link(root: Path) -> None:
    link = root.parent / "link"
    link.symlink_to(root)
    with open_file(str(link), str(link / "job" / "run" / "last.pt")) as file:
        assert file.read() == b"weights"


def file_link(root: Path) -> Path:
    path = root / "job" / "run" / "other.pt"
    path.symlink_to(root.parent / "outside" / "run" / "last.pt")
    return path


def folder_link(root: Path) -> Path:
    (root / "elsewhere").symlink_to(root.parent / "outside")
    return root / "elsewhere" / "run" / "last.pt"


def pipe(root: Path) -> Path:
    os.mkfifo(root / "pipe")
    return root / "pipe"


@pytest.mark.parametrize("make", [file_link, folder_link, pipe, lambda root: root / "job"])
def test_a_link_a_pipe_and_a_folder_are_not_opened(root: Path, make: Callable[[Path], Path]) -> None:
    with pytest.raises(OSError, match=r"symbolic links|Not a directory|no regular file"):
        open_file(str(root), str(make(root)))


@pytest.mark.parametrize(
    "path", ["{root}/../outside/run/last.pt", "{outside}/run/last.pt", "{root}", "{root}/job/\0", "job/run/last.pt"]
)
@pytest.mark.parametrize("act", [open_file, remove_file])
def test_a_path_that_leads_elsewhere_is_refused_by_its_words(
    root: Path, path: str, act: Callable[[str, str], object]
) -> None:
    with pytest.raises(FileNotFoundError, match="does not lie below"):
        act(str(root), path.format(root=root, outside=root.parent / "outside"))
    assert (root.parent / "outside" / "run" / "last.pt").read_bytes() == SECRET


def test_nothing_is_removed_behind_a_link_and_of_a_link_only_itself(root: Path) -> None:
    with pytest.raises(OSError, match=r"symbolic links|Not a directory|no regular file"):
        remove_file(str(root), str(folder_link(root)))
    link = file_link(root)
    remove_file(str(root), str(link))
    assert not link.is_symlink()
    assert (root.parent / "outside" / "run" / "last.pt").read_bytes() == SECRET
