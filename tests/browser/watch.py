"""What goes wrong in a page while a test uses it: the test fails of it, unless it has said that it expects it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch

from playwright.sync_api import BrowserContext, ConsoleMessage, Request, Response, WebError

OWN_BEGIN = ("data:", "blob:", "about:")
"""Addresses of what a page has made itself."""


@dataclass
class Expectation:
    """A refusal that a test is about."""

    status: int
    path: str
    """Of the API, with `*` for any text."""
    happened: bool = False

    def __str__(self) -> str:
        return f"{self.status} of {self.path}"


class Watch:
    """All pages of a context: their console, their errors, and every request that they make."""

    def __init__(self, context: BrowserContext, origin: str) -> None:
        self._origin = origin
        self._expected: list[Expectation] = []
        self._is_away = False
        self.problems: list[str] = []
        """In words, in the order in which they came."""
        context.on("console", self._on_console)
        context.on("weberror", self._on_error)
        context.on("request", self._on_request)
        context.on("requestfailed", self._on_failed)
        context.on("response", self._on_response)

    def expects(self, status: int, path: str) -> None:
        """Say that answers of this status to this path (`/jobs/*/cancel`) are what the test is about."""
        self._expected.append(Expectation(status, path))

    @contextmanager
    def outage(self) -> Iterator[None]:
        """While the service is away requests fail, and that is no fault of the page."""
        self._is_away = True
        yield
        self._is_away = False

    def assert_clean(self) -> None:
        """Fail if anything went wrong, or if what was expected did not happen."""
        missed = [str(each) for each in self._expected if not each.happened]
        assert not self.problems, "the page had problems:\n  " + "\n  ".join(self.problems)
        assert not missed, f"these answers were expected and never came: {', '.join(missed)}"

    def _on_console(self, message: ConsoleMessage) -> None:
        # Chromium's own word on an answer or a failed request, which are looked at below by themselves.
        if message.text.startswith("Failed to load resource:"):
            return
        if message.type in ("error", "warning", "assert"):
            place = message.location
            self._add(f"{message.type} on the console: {message.text} ({place.get('url')}:{place.get('lineNumber')})")

    def _on_error(self, error: WebError) -> None:
        self._add(f"error that nobody caught: {error.error.stack or error.error}")

    def _on_request(self, request: Request) -> None:
        if not request.url.startswith((f"{self._origin}/", *OWN_BEGIN)):
            self._add(f"request to a foreign origin: {request.method} {request.url}")

    def _on_failed(self, request: Request) -> None:
        # What the page itself has let go of is no failure: a stream, or an answer that it needs no more.
        if self._is_away or request.failure == "net::ERR_ABORTED":
            return
        self._add(f"request failed: {request.method} {request.url}: {request.failure}")

    def _on_response(self, response: Response) -> None:
        if response.status < 400:
            return
        path = response.url.removeprefix(self._origin).partition("?")[0]
        for each in self._expected:
            if each.status == response.status and fnmatch(path, each.path):
                each.happened = True
                return
        self._add(f"answer {response.status}: {response.request.method} {response.url}")

    def _add(self, problem: str) -> None:
        self.problems.append(problem)
