"""Every page of the dashboard and every tab of it, by its address."""

from collections.abc import Callable, Mapping

from playwright.sync_api import Page, expect

from tests.browser.scene import Scene

PLACES: Mapping[str, Callable[[Scene], str]] = {
    "jobs": lambda _: "/jobs",
    "selected jobs": lambda scene: f"/jobs?selected={scene.running},{scene.queued}",
    "jobs of which there are none": lambda _: "/jobs?q=nothing-like-that",
    "new job": lambda _: "/jobs/new",
    "clone": lambda scene: f"/jobs/new?clone={scene.trained[0]}",
    "running job": lambda scene: f"/jobs/{scene.running}",
    "queued job": lambda scene: f"/jobs/{scene.queued}",
    "paused job": lambda scene: f"/jobs/{scene.paused}",
    "failed job": lambda scene: f"/jobs/{scene.failed}",
    "metrics": lambda scene: f"/jobs/{scene.trained[0]}/metrics",
    "odd metrics": lambda scene: f"/jobs/{scene.running}/metrics",
    "logs": lambda scene: f"/jobs/{scene.running}/logs",
    "checkpoints": lambda scene: f"/jobs/{scene.trained[0]}/checkpoints",
    "timeline": lambda scene: f"/jobs/{scene.trained[0]}/timeline",
    "spec": lambda scene: f"/jobs/{scene.running}/spec",
    "nothing to compare": lambda _: "/compare",
    "compare": lambda scene: f"/compare?jobs={scene.trained[0]},{scene.trained[1]},{scene.running}",
    "hosts": lambda _: "/hosts",
    "queue": lambda _: "/hosts?view=queue",
    "access": lambda _: "/access",
    "users": lambda _: "/access?section=users",
    "secrets": lambda _: "/access?section=secrets",
    "audit": lambda _: "/access?section=audit",
    "webhooks": lambda _: "/webhooks",
    "settings": lambda _: "/settings",
}


def expect_ready(page: Page) -> None:
    """Wait until all that a page shows at first is there, and it is told of news."""
    expect(page.get_by_role("status", name="Connection")).to_have_text("Live")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.locator("[role=status][aria-label^=Loading]")).to_have_count(0)
