"""The dashboard in the window of a phone, and for who wants nothing to move."""

import pytest
from playwright.sync_api import expect

from tests.browser.accessibility import assert_accessible, assert_fits
from tests.browser.places import PLACES, expect_ready
from tests.browser.scene import Scene
from tests.browser.states import expect_state
from tests.browser.talks import Talks
from tests.browser.visits import PHONE, Visits


def test_no_page_is_wider_than_a_phone(visits: Visits, scene: Scene) -> None:
    visit = visits.by("root", size=PHONE, still=True)
    for what, place in PLACES.items():
        page = visit.open(place(scene))
        expect_ready(page)
        assert_fits(page, what)


@pytest.mark.parametrize("place", ["jobs", "running job", "new job", "hosts"])
def test_what_a_phone_shows_instead_is_accessible_too(visits: Visits, scene: Scene, place: str) -> None:
    page = visits.by("root", size=PHONE, still=True).open(PLACES[place](scene))
    expect_ready(page)
    assert_accessible(page, f"{place} on a phone")


def test_on_a_phone_the_pages_are_behind_a_button(visits: Visits) -> None:
    page = visits.by("alice", size=PHONE).open("/jobs")
    expect_ready(page)
    page.get_by_role("button", name="Open navigation").tap()
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="Hosts").tap()
    expect(page.get_by_role("heading", level=1, name="Hosts")).to_be_visible()
    expect(page.get_by_role("button", name="Open navigation")).to_be_visible()


def test_a_job_is_found_opened_and_paused_on_a_phone(visits: Visits, talks: Talks) -> None:
    talk = talks.begin("bob", waits=True, host="nowhere", name="from-the-train")
    visit = visits.by("bob", size=PHONE)
    page = visit.open("/jobs?q=from-the-train&state=queued")
    page.get_by_role("link", name="from-the-train").tap()
    visit.expect_at(f"/jobs/{talk.id}")
    page.get_by_role("button", name="Pause", exact=True).tap()
    expect_state(page, "paused")


def test_nothing_moves_for_who_wants_reduced_motion(visits: Visits, scene: Scene) -> None:
    visit = visits.by("root", still=True)
    moving = "[...document.getAnimations()].filter(each => each.effect.getComputedTiming().duration > 1).length"
    for place in ("jobs", "running job", "hosts"):
        page = visit.open(PLACES[place](scene))
        expect_ready(page)
        assert page.evaluate(moving) == 0, place
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    assert page.evaluate(moving) == 0
