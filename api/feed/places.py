"""How many streams there may be at once at this process, in all and of one user: each keeps a connection, and news that
wait for it."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from jobs.access import Principal


class UserHasTooManyStreams(Exception):
    """The user has as many streams open as one may have; says so, and the way out."""


class TooManyStreams(Exception):
    """The process has as many streams open as it may have; says so, and the way out."""


class Places:
    """The places of a process's streams. They live on its event loop."""

    def __init__(self, *, most: int, most_of_user: int) -> None:
        """0 sets no limit."""
        self._most = most
        self._most_of_user = most_of_user
        self._taken: Counter[str] = Counter()
        """By user; those for whom no token was asked for are nobody's."""
        self._taken_in_all = 0

    @contextmanager
    def taken(self, by: Principal) -> Iterator[None]:
        """Keep one for a stream until the end of the block. Raises UserHasTooManyStreams and TooManyStreams."""
        if by.user is not None and 0 < self._most_of_user <= self._taken[by.user]:
            raise UserHasTooManyStreams(
                f"{by.user} has {self._taken[by.user]} event streams open here already: close one, or follow several "
                "jobs in one stream (jobs=7,8); RANKZERO_STREAMS_PER_USER says how many there may be"
            )
        if 0 < self._most <= self._taken_in_all:
            raise TooManyStreams(
                f"this process has {self._taken_in_all} event streams open already: try again later, or at another "
                "one; RANKZERO_STREAMS says how many there may be"
            )
        self._taken_in_all += 1
        if by.user is not None:
            self._taken[by.user] += 1
        try:
            yield
        finally:
            self._taken_in_all -= 1
            if by.user is not None:
                self._taken[by.user] -= 1
                if not self._taken[by.user]:
                    del self._taken[by.user]
