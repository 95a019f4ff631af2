"""Hosts and the queue: who has which device, and what admins do with them."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.dashboard import Dashboard
from tests.browser.talks import Talks
from tests.browser.visits import Visits


@pytest.fixture(autouse=True)
def _open_host(dashboard: Dashboard) -> Iterator[None]:
    """Have the host take jobs again after each test."""
    yield
    root = dashboard.api.by("root")
    root.post("/hosts/alpha/undrain")
    root.post("/hosts/alpha/devices/cuda:7/release")


def device(page: Page, name: str) -> Locator:
    devices = page.get_by_role("list", name="Devices of alpha").get_by_role("listitem")
    return devices.filter(has=page.get_by_text(name, exact=True))


def test_a_device_shows_the_job_that_has_it_for_as_long_as_it_has_it(visits: Visits, talks: Talks) -> None:
    page = visits.by("vera").open("/hosts")
    expect(device(page, "cuda:6")).to_contain_text("free")
    expect(device(page, "cuda:6")).to_contain_text("simulated")
    talk = talks.begin("alice", device="cuda:6", name="holder")
    expect(device(page, "cuda:6").get_by_role("link", name=f"#{talk.id} holder")).to_be_visible()
    talk.end()
    expect(device(page, "cuda:6")).to_contain_text("free")


def test_an_admin_drains_a_host_and_takes_it_back(visits: Visits, talks: Talks, dashboard: Dashboard) -> None:
    page = visits.by("root").open("/hosts")
    other = visits.by("vera").open("/hosts")
    expect(other.get_by_role("region", name="alpha")).to_contain_text("Takes jobs")
    page.get_by_role("button", name="Drain alpha").click()
    dialog = page.get_by_role("dialog", name="Drain alpha")
    dialog.get_by_label("Note").fill("new driver")
    dialog.get_by_role("button", name="Drain", exact=True).click()
    expect(dialog).to_be_hidden()
    for each in (page, other):
        expect(each.get_by_role("region", name="alpha")).to_contain_text("Drained")
        expect(each.get_by_role("region", name="alpha")).to_contain_text("new driver")
    talk = talks.begin("alice", waits=True, name="has to wait")
    queue = visits.by("alice").open("/hosts?view=queue")
    expect(queue.get_by_role("list", name="Waiting jobs")).to_contain_text(f"#{talk.id} has to wait")
    expect(queue.get_by_role("row").filter(has_text="has to wait")).to_contain_text("drained")
    page.get_by_role("button", name="Take alpha back").click()
    expect(other.get_by_role("region", name="alpha")).to_contain_text("Takes jobs")
    dashboard.service.wait_for_attempt(talk.id, 1)
    expect(queue.get_by_role("list", name="Jobs on alpha")).to_contain_text(f"#{talk.id} has to wait")


def test_a_device_is_put_into_quarantine_with_a_reason_and_released(visits: Visits) -> None:
    page = visits.by("root").open("/hosts")
    page.get_by_role("button", name="Quarantine cuda:7 of alpha").click()
    dialog = page.get_by_role("dialog", name="Quarantine cuda:7 of alpha")
    dialog.get_by_label("Reason").fill("<i>loose riser</i>")
    dialog.get_by_role("button", name="Quarantine").click()
    expect(device(page, "cuda:7")).to_contain_text("<i>loose riser</i>")
    page.get_by_role("button", name="Release cuda:7 of alpha").click()
    expect(device(page, "cuda:7")).not_to_contain_text("loose riser")


def test_a_host_that_reports_is_not_removed_and_why_is_told(visits: Visits) -> None:
    visit = visits.by("root")
    visit.watch.expects(409, "/hosts/alpha")
    page = visit.open("/hosts")
    page.get_by_role("button", name="Remove alpha").click()
    dialog = page.get_by_role("dialog", name="Remove alpha")
    dialog.get_by_role("button", name="Remove").click()
    expect(dialog.get_by_role("alert")).to_contain_text("alpha")
    dialog.get_by_role("button", name="Keep it").click()
    expect(page.get_by_role("region", name="alpha")).to_be_visible()


def test_hosts_are_filtered_by_what_the_address_says(visits: Visits) -> None:
    page = visits.by("vera").open("/hosts?q=nothing-like-that")
    expect(page.get_by_text("No host is like that")).to_be_visible()
    page.get_by_role("button", name="Show all").click()
    expect(page.get_by_role("region", name="alpha")).to_be_visible()
    page.get_by_label("State").select_option("Drained")
    expect(page.get_by_text("No host is like that")).to_be_visible()
