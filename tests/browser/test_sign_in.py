"""Who gets into the dashboard, and how."""

from playwright.sync_api import Page, expect

from tests.browser.dashboard import Dashboard
from tests.browser.visits import Visits


def sign_in(page: Page, token: str) -> None:
    page.get_by_role("textbox", name="Token").fill(token)
    page.get_by_role("button", name="Sign in").click()


def test_a_wrong_token_is_told_and_a_right_one_gets_in(visits: Visits, dashboard: Dashboard) -> None:
    visit = visits.by(None)
    visit.watch.expects(401, "/me")
    page = visit.open("/jobs")
    sign_in(page, "rz_" + "A" * 43)
    expect(page.get_by_role("alert")).to_contain_text("This token does not count")
    sign_in(page, dashboard.api.tokens["alice"])
    expect(page.get_by_role("heading", level=1, name="Jobs")).to_be_visible()
    expect(page.get_by_role("navigation", name="Pages")).to_contain_text("alice")
    expect(page.get_by_role("status", name="Connection")).to_have_text("Live")


def test_a_page_that_was_asked_for_is_shown_after_signing_in(visits: Visits, dashboard: Dashboard) -> None:
    visit = visits.by(None)
    page = visit.open("/hosts")
    sign_in(page, dashboard.api.tokens["alice"])
    expect(page.get_by_role("heading", level=1, name="Hosts")).to_be_visible()


def test_a_token_counts_for_its_tab_alone_unless_it_is_to_be_kept(visits: Visits, dashboard: Dashboard) -> None:
    visit = visits.by(None)
    page = visit.open("/settings")
    sign_in(page, dashboard.api.tokens["vera"])
    settings = page.get_by_role("heading", level=1, name="Settings")
    expect(settings).to_be_visible()
    page.reload()
    expect(settings).to_be_visible()
    other = visit.context.new_page()
    other.goto(f"{visit.url}/settings")
    expect(other.get_by_role("heading", level=1, name="Sign in to RankZero")).to_be_visible()
    other.get_by_role("checkbox", name="Keep me signed in on this browser").check()
    sign_in(other, dashboard.api.tokens["vera"])
    expect(other.get_by_role("heading", level=1, name="Settings")).to_be_visible()
    third = visit.context.new_page()
    third.goto(f"{visit.url}/settings")
    expect(third.get_by_role("heading", level=1, name="Settings")).to_be_visible()


def test_who_signs_out_leaves_nothing_behind(visits: Visits) -> None:
    visit = visits.by("vera")
    page = visit.open("/settings")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", level=1, name="Sign in to RankZero")).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", level=1, name="Sign in to RankZero")).to_be_visible()


def test_a_token_that_is_revoked_while_its_page_is_open_signs_out_and_says_so(
    visits: Visits, dashboard: Dashboard
) -> None:
    made = dashboard.api.by("root").post("/tokens", json={"name": "short", "user": "bob"}).json()
    visit = visits.by(None)
    visit.watch.expects(401, "*")
    page = visit.open("/settings")
    sign_in(page, made["token"])
    expect(page.get_by_role("heading", level=1, name="Settings")).to_be_visible()
    assert dashboard.api.by("root").delete(f"/tokens/{made['id']}").status_code == 204
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="Hosts").click()
    expect(page.get_by_role("alert")).to_contain_text("This token does not count")
