"""Visits to the dashboard: each a browser of its own, of one user, whose pages are watched."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

from playwright.sync_api import Browser, BrowserContext, Page, StorageState

from tests.browser.watch import Watch
from tests.integration.guarded_api import GuardedApi

TOKEN_KEY = "rankzero.token"
"""Under which the dashboard keeps the token of who wants to stay signed in."""
DESKTOP = (1280, 800)
PHONE = (390, 844)
DEADLINE_MS = 30_000


@dataclass(frozen=True)
class Visit:
    """One browser with one page in it."""

    context: BrowserContext
    page: Page
    watch: Watch
    url: str
    """Of the dashboard, with no slash at its end."""

    def open(self, path: str) -> Page:
        """Go to a page of the dashboard by its address, as from a bookmark."""
        self.page.goto(f"{self.url}{path}")
        return self.page

    def expect_at(self, path: str) -> None:
        """Wait until the address is that of another page, however it encodes what it says."""
        self.page.wait_for_url(lambda address: unquote(address) == f"{self.url}{path}")


class Visits:
    """The visits of one test."""

    def __init__(self, browser: Browser, api: GuardedApi) -> None:
        self._browser = browser
        self.api = api
        self._begun: list[Visit] = []

    def by(
        self,
        user: str | None,
        *,
        size: tuple[int, int] = DESKTOP,
        colours: Literal["light", "dark"] = "light",
        still: bool = False,
    ) -> Visit:
        """Begin a visit by somebody who has signed in already, or by nobody.

        `still` asks for reduced motion, so that what is measured or drawn is not on its way.
        """
        state: StorageState = {"cookies": [], "origins": []}
        if user is not None:
            url, token = self.api.url, self.api.tokens[user]
            state["origins"] = [{"origin": url, "localStorage": [{"name": TOKEN_KEY, "value": token}]}]
        context = self._browser.new_context(
            storage_state=state,
            viewport={"width": size[0], "height": size[1]},
            color_scheme=colours,
            reduced_motion="reduce" if still else "no-preference",
            locale="en-GB",
            timezone_id="UTC",
            has_touch=size == PHONE,
            permissions=["clipboard-read", "clipboard-write"],
        )
        context.set_default_timeout(DEADLINE_MS)
        watch = Watch(context, self.api.url)
        visit = Visit(context, context.new_page(), watch, f"{self.api.url}/ui")
        self._begun.append(visit)
        return visit

    def photograph(self, folder: Path) -> list[Path]:
        """Keep what every page shows now, for who has to find out why a test failed."""
        paths = []
        for number, visit in enumerate(self._begun):
            path = folder / f"page-{number}.png"
            visit.page.screenshot(path=path)
            paths.append(path)
        return paths

    def end(self) -> None:
        """Close every page."""
        for visit in self._begun:
            visit.context.close()

    def assert_clean(self) -> None:
        """Fail if anything went wrong in any page."""
        for visit in self._begun:
            visit.watch.assert_clean()
