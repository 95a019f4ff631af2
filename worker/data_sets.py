"""Data sets of this host: a thread of the worker looks into its data roots now and then, and publishes what is there.

A folder may be large, and its file system slow: so nothing waits for it, and each look has its bounds.
"""

import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import structlog

from jobs.data_sets import DataSet
from jobs.database import Database
from jobs.store import data_sets
from worker import surveying
from worker.steps import attempted

LOOK_S = 900
"""Seconds between two looks."""
AGAIN_S = 2
"""Seconds until the next try where what was found could not be published, or this worker has no host yet."""

log = structlog.get_logger()


class DataSets(threading.Thread):
    """Looks into the data roots of this host until stopped."""

    def __init__(
        self, database: Database, host_name: str, roots: Mapping[str, str], *, is_held: Callable[[], bool]
    ) -> None:
        """`roots` are folders by name; `is_held` says whether the host's name is this worker's."""
        super().__init__(name="data_sets", daemon=True)
        self._database = database
        self._host_name = host_name
        self._roots = roots
        self._is_held = is_held
        self._found: list[DataSet] | None = None
        """What has been found and not been published."""
        self._stopping = threading.Event()

    def run(self) -> None:
        """Look every LOOK_S until stopped."""
        wait_s: float = 0
        while not self._stopping.wait(wait_s):
            wait_s = LOOK_S
            with attempted("data_sets", self._database):
                self._look()
                wait_s = AGAIN_S
                if self._has_published():
                    wait_s = LOOK_S

    def stop(self) -> None:
        """Begin no further look. One that is under way is not waited for: its file system may hang."""
        self._stopping.set()

    def _look(self) -> None:
        if self._found is None:
            self._found = [each for name, path in self._roots.items() for each in surveying.survey(name, Path(path))]

    def _has_published(self) -> bool:
        if not self._is_held():
            return False
        assert self._found is not None, "it has looked"
        with self._database.session_scope() as session:
            data_sets.publish(session, self._host_name, self._found)
        log.info("data_sets_published", data_sets=len(self._found))
        self._found = None
        return True
