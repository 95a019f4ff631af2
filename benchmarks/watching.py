"""A page of a browser that is watched: what it asks for, which of its frames come, and how long its tasks take."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, Request

from tests.waiting import wait_until

FRAME_MS = 1000 / 60
MOST_TASK_MS = 100
"""What any task may take while a page changes, so that nobody sees it halt."""
QUIET_MS = 500
"""A page that has asked for nothing for so long has what it shows."""
PATIENCE_S = 60

# A task of less than 50 ms is no entry: it delays no frame that anybody would miss.
_WATCH = """
window.watched = { tasks: [], frames: [] }
new PerformanceObserver((list) => watched.tasks.push(...list.getEntries().map((entry) => entry.duration)))
  .observe({ type: "longtask" })
requestAnimationFrame(function frame(at) { watched.frames.push(at); requestAnimationFrame(frame) })
"""
_FORGET = "watched.tasks.length = 0; watched.frames.length = 0"


@dataclass(frozen=True)
class Smoothness:
    """How a page fared while it was watched."""

    longest_ms: float
    """The longest task; 0 where none took 50 ms."""
    frames: int
    dropped: int
    """Frames of 60 a second that did not come."""

    def __str__(self) -> str:
        longest = f"longest task {self.longest_ms:.0f} ms" if self.longest_ms else "no task of 50 ms"
        return f"{longest} ({limit(self.longest_ms, MOST_TASK_MS)}); {self.frames} frames, {self.dropped} dropped"


class Traffic:
    """The requests of a page that are under way, but for streams, which last while they are open."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._under_way: set[Request] = set()
        self._last = time.monotonic()
        page.on("request", self._begin)
        page.on("requestfinished", self._end)
        page.on("requestfailed", self._end)

    def wait_for_quiet(self) -> None:
        """Wait until the page has all that it has asked for, and asks for no more."""

        def is_quiet() -> bool:
            self._page.wait_for_timeout(20)  # what playwright is told of the page comes only while it waits in it
            return not self._under_way and (time.monotonic() - self._last) * 1000 >= QUIET_MS

        wait_until(is_quiet, timeout_s=PATIENCE_S, what=lambda: f"{[each.url for each in self._under_way]} to end")

    def _begin(self, request: Request) -> None:
        if urlsplit(request.url).path != "/events":
            self._under_way.add(request)
            self._last = time.monotonic()

    def _end(self, request: Request) -> None:
        self._under_way.discard(request)


@contextmanager
def watched_page(browser: Browser) -> Iterator[Page]:
    """A page of a browser that has kept nothing, tall enough for all charts."""
    context = browser.new_context(viewport={"width": 1280, "height": 1100})
    try:
        context.add_init_script(_WATCH)
        yield context.new_page()
    finally:
        context.close()


def forget(page: Page) -> None:
    """Forget what came before."""
    page.evaluate(_FORGET)


def smoothness(page: Page) -> Smoothness:
    """How it fared since."""
    watched = page.evaluate("watched")
    frames: list[float] = watched["frames"]
    gaps = [later - earlier for earlier, later in pairwise(frames)]
    dropped = sum(max(0, round(gap / FRAME_MS) - 1) for gap in gaps)
    return Smoothness(max(watched["tasks"], default=0.0), len(frames), dropped)


def limit(worst: float, most: float) -> str:
    """Say in words what a figure is held against."""
    return f"limit {most:,} ms, {'kept' if worst <= most else 'exceeded'}"
