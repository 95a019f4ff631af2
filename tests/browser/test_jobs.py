"""The table of jobs: live, filtered, ordered, selected, told together."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.dashboard import Dashboard
from tests.browser.talks import Talks
from tests.browser.visits import Visits


def row(page: Page, job_id: int) -> Locator:
    return page.get_by_role("row").filter(has=page.get_by_role("checkbox", name=f"Select job {job_id}", exact=True))


def search(page: Page, text: str) -> None:
    page.get_by_role("searchbox", name="Search the jobs").fill(text)


@dataclass(frozen=True)
class Three:
    """Jobs of alice that wait for a host that there is not, each of a higher priority than the one before."""

    ids: list[int]
    search: str
    """What finds these alone."""


@pytest.fixture
def three(talks: Talks, tmp_path: Path) -> Three:
    """Three such jobs."""
    label = tmp_path.name
    job: dict[str, Any] = {"waits": True, "host": "nowhere", "labels": {"of": label}}
    ids = [talks.begin(name=f"three-{priority}", priority=priority, **job).id for priority in (10, 20, 30)]
    return Three(ids, f"label:of={label}")


def test_a_job_appears_runs_and_ends_in_the_table_with_no_reload(visits: Visits, talks: Talks) -> None:
    page = visits.by("vera").open("/jobs")
    expect(page.get_by_role("heading", level=1, name="Jobs")).to_be_visible()
    expect(page.get_by_role("status", name="Connection")).to_have_text("Live")
    talk = talks.begin("alice", name="as one watches")
    expect(row(page, talk.id).locator("[data-state=running]").first).to_be_visible()
    expect(row(page, talk.id)).to_contain_text("alice")
    talk.measure(1, **{"train/loss": 0.75})
    expect(row(page, talk.id)).to_contain_text("0.75")
    talk.fail("nothing works")
    expect(row(page, talk.id)).to_contain_text("failed")
    expect(row(page, talk.id)).to_contain_text("ValueError: nothing works")
    expect(row(page, talk.id)).to_have_count(1)


def test_what_one_looks_for_is_in_the_address_and_narrows_the_table(visits: Visits, three: Three) -> None:
    visit = visits.by("vera")
    page = visit.open("/jobs")
    search(page, f"{three.search} three-20")
    expect(row(page, three.ids[1])).to_be_visible()
    expect(page.get_by_role("status").filter(has_text="1 job")).to_be_visible()
    page.reload()
    expect(row(page, three.ids[1])).to_be_visible()
    expect(page.get_by_role("searchbox", name="Search the jobs")).to_have_value(f"{three.search} three-20")
    search(page, three.search)
    expect(row(page, three.ids[0])).to_be_visible()
    page.get_by_role("button", name="paused", exact=True).click()
    expect(page.get_by_text("No job is like that")).to_be_visible()
    page.get_by_role("button", name="paused", exact=True).click()
    page.get_by_role("button", name="queued", exact=True).click()
    expect(row(page, three.ids[0])).to_contain_text("nowhere")
    page.get_by_role("button", name="Clear filters").first.click()
    visit.expect_at("/jobs")


def test_the_table_is_ordered_by_its_headings(visits: Visits, three: Three) -> None:
    page = visits.by("vera").open(f"/jobs?q={three.search}")
    names = page.get_by_role("rowheader").get_by_role("link")
    expect(names).to_have_text(["three-30", "three-20", "three-10"])
    page.get_by_role("button", name="Name", exact=True).click()
    expect(names).to_have_text(["three-10", "three-20", "three-30"])
    expect(page.get_by_role("columnheader", name="Name")).to_have_attribute("aria-sort", "ascending")
    page.get_by_role("button", name="Priority", exact=True).click()
    expect(names).to_have_text(["three-30", "three-20", "three-10"])


def test_selected_jobs_are_given_a_priority_paused_and_cancelled_together(
    visits: Visits, dashboard: Dashboard, three: Three
) -> None:
    page = visits.by("alice").open(f"/jobs?q={three.search}")
    row(page, three.ids[0]).get_by_role("checkbox").check()
    row(page, three.ids[2]).get_by_role("checkbox").click(modifiers=["Shift"])
    bar = page.get_by_role("region", name="Selected jobs")
    expect(bar).to_contain_text("3 jobs selected")
    page.reload()
    expect(bar).to_contain_text("3 jobs selected")
    bar.get_by_label("Priority from 0 to 100").fill("77")
    bar.get_by_role("button", name="Set priority").click()
    for job_id in three.ids:
        expect(row(page, job_id)).to_contain_text("77")
    bar.get_by_role("button", name="Pause").click()
    for job_id in three.ids:
        expect(row(page, job_id).locator("[data-state=paused]").first).to_be_visible()
    bar.get_by_role("button", name="Cancel").click()
    page.get_by_role("dialog", name="Cancel 3 jobs?").get_by_role("button", name="Cancel 3 jobs").click()
    for job_id in three.ids:
        expect(row(page, job_id).locator("[data-state=cancelled]").first).to_be_visible()
    assert [dashboard.service.job(job_id).priority for job_id in three.ids] == [77, 77, 77]


def test_what_is_refused_of_several_is_told_and_the_rest_is_done(
    visits: Visits, dashboard: Dashboard, talks: Talks
) -> None:
    own, other = (talks.begin(user, waits=True, host="nowhere", name="of two").id for user in ("alice", "bob"))
    visit = visits.by("alice")
    visit.watch.expects(403, f"/jobs/{other}/cancel")
    page = visit.open(f"/jobs?q=two&selected={own},{other}")
    page.get_by_role("region", name="Selected jobs").get_by_role("button", name="Cancel").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel 2 jobs").click()
    expect(page.get_by_role("region", name="Notices")).to_contain_text("bob")
    expect(row(page, own).locator("[data-state=cancelled]").first).to_be_visible()
    assert dashboard.service.job(other).state == "queued"


def test_the_keys_move_open_and_select_rows(visits: Visits, three: Three) -> None:
    visit = visits.by("alice")
    page = visit.open(f"/jobs?q={three.search}")
    expect(row(page, three.ids[0])).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.get_by_role("link", name="three-20")).to_be_focused()
    page.keyboard.press("x")
    expect(row(page, three.ids[1]).get_by_role("checkbox")).to_be_checked()
    page.keyboard.press("k")
    expect(page.get_by_role("link", name="three-30")).to_be_focused()
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox", name="Search the jobs")).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("o")
    visit.expect_at(f"/jobs/{three.ids[2]}")
    page.go_back()
    expect(row(page, three.ids[1]).get_by_role("checkbox")).to_be_checked()


def test_selected_jobs_lead_to_their_comparison(visits: Visits, three: Three) -> None:
    visit = visits.by("vera")
    page = visit.open(f"/jobs?selected={three.ids[0]},{three.ids[1]}")
    page.get_by_role("region", name="Selected jobs").get_by_role("link", name="Compare").click()
    visit.expect_at(f"/compare?jobs={three.ids[0]},{three.ids[1]}")
