"""The shared file: one that all ranks of a host have open, that has no name, and that is gone when they are."""

import json
import os
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Self

from trainer.data.known import data_root
from trainer.process_group import ProcessGroup

_MOST_OF_THE_ROOM = 0.5
"""The share of a disk's free room that a file may take: checkpoints need some, and so does the job beside ours."""
_IN_MEMORY = ("tmpfs", "ramfs")
_ON_A_NETWORK = ("nfs", "nfs4", "cifs", "smb3", "ceph", "lustre", "beegfs", "gpfs", "fuse.sshfs", "fuse.glusterfs")


def open_shared(length: int, *, matter: str, group: ProcessGroup) -> int | None:
    """Return a descriptor of a new file of holes that all ranks of this host share, `length` bytes long.

    Every rank has to call it, with a `matter` of its own for each file of a run. Returns None where no folder has twice
    the room, and on a rank that does not see the first rank's files.
    """
    is_first = group.environment.local_rank == 0
    file = _OpenFile.create(length) if is_first else None
    address = group.share_on_node(matter, file.address if file is not None else "")
    if file is None and address:
        file = _OpenFile.join(address)
    if sys.platform != "linux":  # it still has its name
        group.wait_for_all()
        if file is not None and is_first:
            os.unlink(file.path)
    return file.descriptor if file is not None else None


class _OpenFile(NamedTuple):
    """A file that is open here."""

    descriptor: int
    path: str

    @classmethod
    def create(cls, length: int) -> Self | None:
        """Create the file as a host's first rank.

        On Linux it has no name, and the others find it by this process's descriptor: however early a run is killed,
        nothing stays behind, but for an empty file on a disk where each has a name. Elsewhere it keeps its name until
        they have opened it.
        """
        for folder in _folders():
            with suppress(OSError):  # a folder that cannot be written to, or a limit on the size of files
                folder.mkdir(parents=True, exist_ok=True)
                if length <= shutil.disk_usage(folder).free * _MOST_OF_THE_ROOM:
                    file = cls._unnamed(folder) if sys.platform == "linux" else cls(*tempfile.mkstemp(dir=folder))
                    return file._of_length(length)
        return None

    @classmethod
    def _unnamed(cls, folder: Path) -> Self:
        try:
            descriptor = os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError:  # not every file system has files without a name; what the folder lacks besides, mkstemp tells
            descriptor, path = tempfile.mkstemp(dir=folder)
            os.unlink(path)  # what is killed right before leaves an empty file
        return cls(descriptor, f"/proc/{os.getpid()}/fd/{descriptor}")

    def _of_length(self, length: int) -> Self:
        try:
            os.truncate(self.descriptor, length)
        except OSError:
            os.close(self.descriptor)
            if sys.platform != "linux":
                os.unlink(self.path)
            raise
        return self

    @classmethod
    def join(cls, address: str) -> Self | None:
        """Open the file that the host's first rank has created, or return None where this rank does not see it."""
        path, *identity = json.loads(address)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return None
        file = cls(descriptor, path)
        if file._identity() != identity:  # in a container of its own, a rank finds another file at that path
            os.close(descriptor)
            return None
        return file

    @property
    def address(self) -> str:
        """What the other ranks of the host find it by."""
        return json.dumps([self.path, *self._identity()])

    def _identity(self) -> list[int]:
        status = os.fstat(self.descriptor)
        return [status.st_dev, status.st_ino]


def _folders() -> list[Path]:
    """Return where the file may lie: on a disk of this host if possible, and in its memory only if nowhere else."""

    def drawback(folder: Path) -> int:
        kind = _file_system(next(each for each in (folder, *folder.parents) if each.exists()))
        return 2 if kind in _IN_MEMORY else 1 if kind in _ON_A_NETWORK else 0

    return sorted((data_root().absolute(), Path(tempfile.gettempdir())), key=drawback)


def _file_system(path: Path) -> str:
    """Return the kind of file system that a path is on, such as ext4, or nothing where Linux does not say."""
    device = os.stat(path).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    try:
        mounts = Path("/proc/self/mountinfo").read_text(errors="replace").splitlines()
    except OSError:
        return ""
    # proc_pid_mountinfo(5): the third field is the device; the kind follows a dash.
    kinds = (fields[fields.index("-") + 1] for line in mounts if (fields := line.split())[2] == number)
    return next(kinds, "")
