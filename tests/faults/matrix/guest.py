"""The guest: a second host of a lane, with a network, a disk and a clock of its own, for the faults of these.

It stands from trial to trial. It is drained but where a trial has opened it: no other trial's job may come here.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from jobs.store import maintenance
from tests.children import first_on_path
from tests.mounts import read_only
from tests.networks import NetworkHost, may_make_networks, network
from tests.proxy import Proxy
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.faults.matrix.lane import Lane

NAME = "guest"
DISK_BYTES = 64 * 2**20
"""Room for the checkpoints of two attempts of the longest training of the matrix."""
MIN_FREE_BYTES = 8 * 2**20
DISK_LABEL = "rankzero-test-disk-"
"""How the mounts that are made here call themselves, followed by the process that made them."""
CLOCK_HOOK = Path(__file__).parent / "clock_hook"


class Guest:
    """The host, and what can be done to it."""

    def __init__(self, lane: "Lane", closing: ExitStack, *, tick_s: float) -> None:
        """Start it, drained. `closing` ends what it has beside its worker, which is the lane's."""
        self._lane = lane
        self._cable: NetworkHost | None = None
        address = "127.0.0.1"
        inside: tuple[str, ...] = ()
        if may_make_networks():
            net = closing.enter_context(network(1))
            (self._cable,) = net.hosts
            address, inside = net.own_address, self._cable.inside
        urls = (lane.database_url, lane.valkey.url)
        self._ways = [closing.enter_context(Proxy(url, address=address)) for url in urls]
        self.disk = lane.folder / NAME
        self.disk.mkdir()
        self.has_small_disk = closing.enter_context(_small_disk(self.disk))
        """Whether this machine lets the tests make one."""
        self._clock = lane.folder / f"{NAME}.clock"
        self.set_clock(by_s=0)
        hook = (*first_on_path(CLOCK_HOOK), f"CLOCK_FILE={self._clock}")
        database, broker = self._ways
        self.worker = lane.worker(
            NAME,
            inside=(*inside, *hook),
            database_url=database.url,
            broker_url=broker.url,
            min_free_bytes=MIN_FREE_BYTES,
            tick_s=tick_s,
        )
        self._drain()
        closing.callback(lane.dismiss, NAME)  # before its disk goes

    @contextmanager
    def open(self) -> Iterator[None]:
        """Have it take jobs, on a disk that is empty; afterwards it takes none."""
        for run in self.disk.glob("job-*"):
            shutil.rmtree(run)
        with self._lane.service.database.session_scope() as session:
            maintenance.take_back(session, NAME)
        try:
            yield
        finally:
            self._drain()

    @contextmanager
    def cut_off(self) -> Iterator[None]:
        """Pull its cable; where this machine has none for it, every byte on its way is held back instead."""
        with ExitStack() as stack:
            if self._cable is None:
                for way in self._ways:
                    stack.enter_context(way.silent())
            else:
                stack.callback(self._cable.plug_in)
                self._cable.pull()
            yield

    @contextmanager
    def read_only_disk(self) -> Iterator[None]:
        """Have its disk take no new file, and no change of one that is not open yet. It needs `has_small_disk`."""
        with read_only(self.disk) as is_read_only:
            assert is_read_only, "a machine that lets the tests mount a disk lets them mount it twice"
            yield

    def set_clock(self, *, by_s: float) -> None:
        """Set its wall clock, off the right time by so many seconds."""
        new = self._clock.with_suffix(".new")
        new.write_text(str(by_s))
        new.replace(self._clock)

    def wait_until_it_reports(self) -> None:
        """Return once its worker has been heard of again."""
        before = self._lane.service.heartbeat(NAME)
        wait_until(lambda: self._lane.service.heartbeat(NAME) != before, timeout_s=60, what="the guest to report")

    def _drain(self) -> None:
        with self._lane.service.database.session_scope() as session:
            maintenance.drain(session, NAME, note="its trial is over")


@contextmanager
def _small_disk(folder: Path) -> Iterator[bool]:
    """Mount a file system of its own there, and yield whether that could be done; nothing of it is left."""
    _unmount_abandoned()
    label = f"{DISK_LABEL}{os.getpid()}"
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", label, str(folder)]
    try:
        mounted = subprocess.run(command, check=False, capture_output=True).returncode == 0
    except FileNotFoundError:
        mounted = False
    try:
        yield mounted
    finally:
        if mounted:
            _unmount(folder)


def _unmount_abandoned() -> None:
    """Unmount what a test process that was killed has left."""
    for each in psutil.disk_partitions(all=True):
        owner = each.device.removeprefix(DISK_LABEL)
        if each.device.startswith(DISK_LABEL) and owner.isdigit() and not psutil.pid_exists(int(owner)):
            _unmount(Path(each.mountpoint))


def _unmount(folder: Path) -> None:
    # Lazily: what the trial has left may still have files open there, and is about to be killed.
    subprocess.run(["umount", "--lazy", str(folder)], check=True, capture_output=True)
