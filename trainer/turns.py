"""Turns at a file that several append to: one at a time, and a signal handler's after the one it has interrupted."""

import fcntl
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Turns:
    """The turns at one file of all who append to it in this process, whatever descriptors they have of it.

    Processes and threads wait for each other. A signal handler cannot: what it would wait for goes on when it returns.
    So it asks whether the turn is `mine`, and then leaves its work to be done afterwards.
    """

    def __init__(self) -> None:
        # Reentrant: a handler may come between the lock and the note of who holds it, and then has a turn of its own.
        self._threads = threading.RLock()
        self._holder: int | None = None
        """The thread whose turn it is."""
        self._left: deque[Callable[[], None]] = deque()

    @classmethod
    def at(cls, file: int) -> "Turns":
        """Return those at the file that a descriptor is of."""
        status = os.fstat(file)
        return _known.setdefault((status.st_dev, status.st_ino), cls())

    @property
    def mine(self) -> bool:
        """Whether it is this thread's turn: in a signal handler, that of the code it has interrupted."""
        return self._holder == threading.get_ident()

    @contextmanager
    def taken(self, file: int) -> Iterator[None]:
        """Wait for a turn, and have it. `file` is the descriptor to lock."""
        with self._threads:
            try:
                self._holder = threading.get_ident()
                fcntl.flock(file, fcntl.LOCK_EX)  # inside: a handler may raise as soon as it is held
                yield
            finally:
                try:
                    fcntl.flock(file, fcntl.LOCK_UN)
                finally:
                    self._holder = None

    def leave(self, work: Callable[[], None]) -> None:
        """Have `work` done when this thread's turn is over."""
        self._left.append(work)

    def do_what_is_left(self) -> None:
        """Do what has been left, outside any turn."""
        while self._left:
            try:
                work = self._left.popleft()
            except IndexError:  # another thread was quicker
                return
            work()


_known: dict[tuple[int, int], Turns] = {}
"""By device and inode, and for good: there are as many as there are runs in a process, and one says nothing of a file
that has been deleted since."""
os.register_at_fork(after_in_child=_known.clear)  # the lock may be held by a thread that the child does not have
