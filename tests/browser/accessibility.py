"""What axe finds in a page of WCAG 2.1, levels A and AA."""

import json

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]


def assert_accessible(page: Page, what: str) -> None:
    """Fail with each rule that the page breaks now, and where."""
    if not page.evaluate("typeof axe === 'object'"):
        page.evaluate(AXE_SCRIPT)
    options = json.dumps({"runOnly": RULES, "resultTypes": ["violations"]})
    found = page.evaluate(f"axe.run({options}).then(results => results.violations)")
    lines = [
        f"{each['id']}: {each['help']}\n    {node['html'][:300]}\n    {node['failureSummary']}"
        for each in found
        for node in each["nodes"]
    ]
    assert not lines, f"{what} breaks WCAG in {len(lines)} places:\n  " + "\n  ".join(lines)


def assert_fits(page: Page, what: str) -> None:
    """Fail where the page is wider than its window, so that one has to scroll sideways to read it."""
    over = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert over <= 0, f"{what} is {over} pixels wider than its window"
