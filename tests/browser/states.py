"""The state of a job as its page says it."""

from playwright.sync_api import Page, expect

START_MS = 120_000
"""How long a training may take to begin, or to end, on a machine that does much else."""


def expect_state(page: Page, state: str) -> None:
    """Wait until the heading of a job's page says this state, with no reload."""
    expect(page.get_by_role("heading", level=1).locator("[data-state]")).to_have_text(state, timeout=START_MS)
