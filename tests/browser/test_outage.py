"""The API is killed and started again while pages are open: they say so, heal, and show what they have missed."""

from playwright.sync_api import Page, expect

from jobs.states import State
from tests.browser.dashboard import Dashboard
from tests.browser.states import expect_state
from tests.browser.talks import Talks
from tests.browser.visits import Visits


def expect_connection(page: Page, words: str) -> None:
    expect(page.get_by_role("status", name="Connection")).to_contain_text(words)


def test_pages_heal_without_a_reload_and_show_what_happened_meanwhile_once(
    visits: Visits, talks: Talks, dashboard: Dashboard
) -> None:
    talk = talks.begin("alice", name="survivor")
    talk.say("before the crash")
    visit = visits.by("alice")
    jobs = visit.open("/jobs?q=survivor")
    job, logs = visit.context.new_page(), visit.context.new_page()
    job.goto(f"{visit.url}/jobs/{talk.id}")
    logs.goto(f"{visit.url}/jobs/{talk.id}/logs")
    output = logs.get_by_role("log", name="Output")
    expect(output).to_contain_text("before the crash")
    for page in (jobs, job, logs):
        expect_connection(page, "Live")
        page.evaluate("window.isTheSame = true")

    with visit.watch.outage():
        dashboard.api.kill()
        for page in (jobs, job, logs):
            expect_connection(page, "Connection lost")
        talk.say("first while it was away", "second while it was away")
        talk.fail("while it was away")
        dashboard.service.wait_for(talk.id, State.FAILED)
        other = dashboard.service.submit_program(host="nowhere", name="survivor of another")
        dashboard.api.start()
        for page in (jobs, job, logs):
            expect_connection(page, "Live")

    expect(jobs.get_by_role("row").filter(has_text="survivor of another")).to_have_count(1)
    expect(jobs.get_by_role("row").filter(has_text=f"#{talk.id}")).to_contain_text("failed")
    expect_state(job, "failed")
    expect(job.get_by_role("main")).to_contain_text("ValueError: while it was away")
    for line in ("before the crash", "first while it was away", "second while it was away"):
        expect(output.get_by_text(line, exact=True)).to_have_count(1)
    assert all(page.evaluate("window.isTheSame") for page in (jobs, job, logs)), "a page was reloaded"
    dashboard.api.by("root").post(f"/jobs/{other}/cancel")


def test_what_is_asked_of_a_service_that_is_away_is_told_and_can_be_asked_again(
    visits: Visits, talks: Talks, dashboard: Dashboard
) -> None:
    talk = talks.begin("alice", waits=True, host="nowhere")
    visit = visits.by("alice")
    page = visit.open(f"/jobs/{talk.id}")
    expect_state(page, "queued")
    expect_connection(page, "Live")
    with visit.watch.outage():
        dashboard.api.kill()
        expect_connection(page, "Connection lost")
        page.get_by_role("button", name="Pause", exact=True).click()
        expect(page.get_by_role("region", name="Notices")).to_contain_text("does not answer")
        with page.expect_request("**/events*"):
            page.get_by_role("button", name="Try now").click()
        expect_connection(page, "Connection lost")
        dashboard.api.start()
        expect_connection(page, "Live")
    page.get_by_role("button", name="Pause", exact=True).click()
    expect_state(page, "paused")


def test_a_page_first_asked_for_during_an_outage_is_there_after_it_with_no_reload(
    visits: Visits, dashboard: Dashboard
) -> None:
    visit = visits.by("alice")
    page = visit.open("/settings")
    expect_connection(page, "Live")
    page.evaluate("window.isTheSame = true")
    with visit.watch.outage():
        dashboard.api.kill()
        expect_connection(page, "Connection lost")
        with page.expect_event("requestfailed", lambda request: request.url.endswith(".js")):
            page.get_by_role("navigation", name="Pages").get_by_role("link", name="Hosts").click()
        dashboard.api.start()
        expect(page.get_by_role("heading", level=1, name="Hosts")).to_be_visible()
        expect(page.get_by_role("region", name="alpha")).to_be_visible()
        expect_connection(page, "Live")
    assert page.evaluate("window.isTheSame"), "the page was reloaded"
