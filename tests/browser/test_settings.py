"""What a person prefers, kept in the browser."""

from playwright.sync_api import expect

from tests.browser.visits import Visits


def test_a_theme_that_is_chosen_counts_at_once_and_after_a_reload(visits: Visits) -> None:
    page = visits.by("vera").open("/settings")
    html = page.locator("html")
    expect(html).to_have_attribute("data-mantine-color-scheme", "light")
    theme = page.get_by_role("radiogroup", name="Theme")
    theme.get_by_text("Dark").click()
    expect(html).to_have_attribute("data-mantine-color-scheme", "dark")
    page.reload()
    expect(html).to_have_attribute("data-mantine-color-scheme", "dark")
    theme.get_by_text("As the system").click()
    expect(html).to_have_attribute("data-mantine-color-scheme", "light")
    page.emulate_media(color_scheme="dark")
    expect(html).to_have_attribute("data-mantine-color-scheme", "dark")


def test_times_are_shown_in_the_zone_that_is_chosen(visits: Visits) -> None:
    page = visits.by("vera").open("/settings")
    page.clock.set_fixed_time("2026-03-01T12:30:00Z")
    page.reload()
    expect(page.get_by_role("main")).to_contain_text("12:30")
    zone = page.get_by_role("combobox", name="Time zone")
    zone.fill("Tokyo")
    page.get_by_role("option", name="Asia/Tokyo").click()
    expect(page.get_by_role("main")).to_contain_text("21:30")
    page.reload()
    expect(page.get_by_role("main")).to_contain_text("21:30")


def test_a_density_that_is_chosen_counts_after_a_reload(visits: Visits) -> None:
    page = visits.by("vera").open("/settings")
    page.get_by_role("radiogroup", name="Density").get_by_text("Compact").click()
    page.reload()
    expect(page.get_by_role("radio", name="Compact")).to_be_checked()
