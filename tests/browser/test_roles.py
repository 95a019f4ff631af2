"""Users of different roles: each is offered what the role allows, and told in the service's words what it does not."""

import pytest
from playwright.sync_api import expect

from tests.browser.dashboard import Dashboard
from tests.browser.states import expect_state
from tests.browser.talks import Talks
from tests.browser.visits import Visits

VERBS = ("Cancel", "Pause", "Resume", "Retry", "Priority and labels…")


@pytest.mark.parametrize("user", ["vera", "bob"])
def test_who_may_not_change_a_job_is_offered_no_verb_for_it(visits: Visits, talks: Talks, user: str) -> None:
    talk = talks.begin("alice", waits=True, host="nowhere")
    page = visits.by(user).open(f"/jobs/{talk.id}")
    expect_state(page, "queued")
    for verb in VERBS:
        expect(page.get_by_role("button", name=verb, exact=True)).to_have_count(0)
    expect(page.get_by_role("link", name="Clone and edit")).to_have_count(0 if user == "vera" else 1)


def test_a_viewer_is_offered_nothing_that_changes_anything(visits: Visits, trained: tuple[int, int]) -> None:
    visit = visits.by("vera")
    page = visit.open("/hosts")
    expect(page.get_by_role("region", name="alpha")).to_be_visible()
    for name in ("Drain", "Remove", "Quarantine"):
        expect(page.get_by_role("button", name=name)).to_have_count(0)
    expect(page.get_by_role("link", name="Webhooks")).to_have_count(0)
    visit.open(f"/jobs/{trained[0]}/checkpoints")
    expect(page.get_by_role("button", name="Download checkpoint").first).to_be_visible()
    expect(page.get_by_role("button", name="Remove checkpoint")).to_have_count(0)
    visit.open(f"/jobs?selected={trained[0]}")
    selected = page.get_by_role("region", name="Selected jobs")
    expect(selected).to_be_visible()
    expect(selected.get_by_role("button", name="Cancel")).to_have_count(0)
    visit.open("/jobs/new")
    expect(page.get_by_role("main")).to_contain_text("Your role cannot submit jobs")


def test_an_admin_changes_the_job_of_another(visits: Visits, talks: Talks) -> None:
    talk = talks.begin("alice", waits=True, host="nowhere")
    page = visits.by("root").open(f"/jobs/{talk.id}")
    page.get_by_role("button", name="Pause", exact=True).click()
    expect_state(page, "paused")


def test_what_a_role_has_lost_while_a_page_is_open_is_refused_in_the_services_words(
    visits: Visits, talks: Talks, dashboard: Dashboard
) -> None:
    talk = talks.begin("bob", waits=True, host="nowhere")
    visit = visits.by("bob")
    visit.watch.expects(403, f"/jobs/{talk.id}/pause")
    page = visit.open(f"/jobs/{talk.id}")
    expect_state(page, "queued")
    root = dashboard.api.by("root")
    assert root.patch("/users/bob", json={"role": "viewer"}).status_code == 200
    try:
        page.get_by_role("button", name="Pause", exact=True).click()
        expect(page.get_by_role("region", name="Notices")).to_contain_text("this takes the role submitter")
        expect_state(page, "queued")
    finally:
        root.patch("/users/bob", json={"role": "submitter"})
