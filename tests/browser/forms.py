"""Inputs of a form by their labels."""

from collections.abc import Mapping

from playwright.sync_api import Locator, Page


def field(page: Page, label: str) -> Locator:
    """The input with this label; what is suggested for it has the same."""
    return page.get_by_label(label, exact=True).and_(page.locator("input, select"))


def fill(page: Page, fields: Mapping[str, str]) -> None:
    """Fill in fields by their labels."""
    for label, text in fields.items():
        field(page, label).fill(text)
        page.keyboard.press("Escape")  # closes what is suggested
