"""What the charts of a page show, by the table of values that each has beside its picture."""

import re

from playwright.sync_api import Locator, Page, expect

from tests.browser.visits import DEADLINE_MS
from tests.waiting import wait_until


def chart(page: Page, title: str) -> Locator:
    """The chart of a metric."""
    return page.get_by_role("figure", name=title, exact=True)


def values(page: Page, title: str) -> Locator:
    """Its table, which is open."""
    return page.get_by_role("region", name=f"Values of {title}", exact=True)


def last_step(page: Page, title: str, *, beyond: int = 0) -> int:
    """The step of the last value that a chart's table has, once that is beyond another one."""
    table = values(page, title)
    expect(table).to_be_visible()

    def step() -> int | None:
        found = re.search(r" at ([0-9,]+)$", table.locator("tbody td").first.inner_text())
        at = int(found[1].replace(",", "")) if found else 0
        page.wait_for_timeout(50)  # what playwright is told of the page comes only while it waits in it
        return at if at > beyond else None

    last = wait_until(step, timeout_s=DEADLINE_MS / 1000, what=f"a value of {title} beyond step {beyond}")
    assert last is not None
    return last


def inked(page: Page, title: str) -> int:
    """How many pixels of a chart's picture have something drawn on them."""
    count = (
        chart(page, title)
        .locator("canvas")
        .evaluate(
            "canvas => canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height)"
            ".data.filter((value, index) => index % 4 === 3 && value > 0).length"
        )
    )
    assert isinstance(count, int)
    return count
