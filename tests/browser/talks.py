"""The jobs of one test that run until they are told to end, and what users submit of them."""

from pathlib import Path
from typing import Any

from tests.browser.dashboard import Dashboard
from tests.browser.talking import Talk


class Talks:
    """Begins such jobs, and sees to it that none goes on after its test."""

    def __init__(self, dashboard: Dashboard, folder: Path) -> None:
        self._dashboard = dashboard
        self._folder = folder
        self._begun: list[Talk] = []

    def begin(self, user: str = "alice", *, waits: bool = False, **job: Any) -> Talk:
        """Submit one on behalf of a user; return once it runs, unless it `waits` in the line."""
        folder = self._folder / f"talk-{len(self._begun)}"
        folder.mkdir()
        with self._dashboard.client(user) as client:
            talk = Talk(client, folder, **job)
        self._begun.append(talk)
        if not waits:
            self._dashboard.service.wait_for_attempt(talk.id, 1)
        return talk

    def end(self) -> None:
        """Cancel those that still run, and return once their devices are free."""
        with self._dashboard.client("root") as client:
            for talk in self._begun:
                client.cancel(talk.id)
            for talk in self._begun:
                client.wait(talk.id, timeout_s=60)
