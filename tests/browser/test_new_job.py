"""A job written in the form: submitted, corrected, cloned, begun from a checkpoint."""

import json
import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.charts import last_step
from tests.browser.dashboard import Dashboard
from tests.browser.forms import field, fill
from tests.browser.states import expect_state
from tests.browser.talks import Talks
from tests.browser.visits import Visits

SUBMIT = "Submit job"


def job_of(page: Page) -> int:
    """The id of the job whose page is shown, once it is."""
    expect(page).to_have_url(re.compile(r"/ui/jobs/[0-9]+$"))
    return int(page.url.rpartition("/")[2])


def test_a_job_for_two_devices_is_submitted_trains_on_both_and_its_curve_grows_as_one_watches(
    visits: Visits, dashboard: Dashboard
) -> None:
    page = visits.by("alice").open("/jobs/new")
    wanted = {"Image size": "32", "Epochs": "100", "Batch": "32", "LR": "0.02"}
    fill(page, {"Model": "squeezenet1_1", "Data": "digits", **wanted})
    page.get_by_label("Train on").select_option("devices by name")
    fill(page, {"Devices": "cuda:0,cuda:1", "Name": "by the form"})
    dry_run = page.get_by_role("region", name="Dry run")
    expect(dry_run).to_contain_text("It would start now")
    expect(dry_run).to_contain_text("alpha: cuda:0, cuda:1")
    expect(dry_run.get_by_text("Batch per rank").locator("xpath=following-sibling::dd")).to_have_text("16")
    shown = json.loads(page.get_by_label("request as JSON", exact=True).inner_text())
    page.get_by_role("button", name=SUBMIT).click()
    job_id = job_of(page)
    submitted = dashboard.api.by("alice").get(f"/jobs/{job_id}").json()
    assert (submitted["name"], submitted["user"]) == ("by the form", "alice")
    assert shown["train"]["model"] == submitted["spec"]["train"]["model"] == "squeezenet1_1"
    assert len(shown["train"]) == 6, "what is the default is not sent"
    expect_state(page, "running")
    page.get_by_role("navigation", name="Parts of the job").get_by_role("link", name="Metrics").click()
    page.get_by_role("button", name="Values of train/loss").click()
    seen = last_step(page, "train/loss")
    for _ in range(3):
        seen = last_step(page, "train/loss", beyond=seen)
    dashboard.api.by("alice").post(f"/jobs/{job_id}/cancel")
    expect_state(page, "cancelled")
    (attempt,) = dashboard.api.by("alice").get(f"/jobs/{job_id}/attempts").json()["items"]
    assert attempt["world_size"] == 2
    assert [device["name"] for device in attempt["placements"][0]["devices"]] == ["cuda:0", "cuda:1"]


def test_what_is_wrong_is_said_at_its_field_and_nothing_is_submitted(visits: Visits) -> None:
    visit = visits.by("alice")
    visit.watch.expects(422, "/jobs/plan")
    visit.watch.expects(422, "/jobs")
    page = visit.open("/jobs/new")
    fill(page, {"Model": "resnet18", "Data": "digits", "Batch": "-5"})
    dry_run = page.get_by_role("region", name="Dry run")
    expect(dry_run).to_contain_text("It would be refused")
    batch = field(page, "Batch")
    expect(batch).to_have_attribute("aria-invalid", "true")
    page.get_by_role("button", name=SUBMIT).click()
    expect(batch).to_be_focused()
    expect(page.get_by_role("heading", level=1, name="New job")).to_be_visible()
    batch.fill("64")
    expect(dry_run).to_contain_text("It would start now")
    expect(batch).not_to_have_attribute("aria-invalid", "true")


def test_a_job_whose_devices_are_taken_is_told_what_it_would_wait_for(visits: Visits, talks: Talks) -> None:
    holder = talks.begin("bob", device="cuda:5")
    page = visits.by("alice").open("/jobs/new")
    fill(page, {"Model": "resnet18", "Data": "digits"})
    page.get_by_label("Train on").select_option("devices by name")
    fill(page, {"Devices": "cuda:5"})
    dry_run = page.get_by_role("region", name="Dry run")
    expect(dry_run).to_contain_text("It would not start now")
    expect(dry_run.get_by_role("link", name=f"job {holder.id}")).to_be_visible()


def test_a_clone_keeps_its_parent_and_differs_in_what_was_edited_alone(
    visits: Visits, dashboard: Dashboard, trained: tuple[int, int]
) -> None:
    page = visits.by("alice").open(f"/jobs/{trained[0]}")
    page.get_by_role("link", name="Clone and edit").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(f"New job like job {trained[0]}")
    lr = field(page, "LR")
    expect(lr).to_have_value("0.01")
    lr.fill("0.005")
    field(page, "Host").select_option("alpha")
    changes = page.get_by_role("region", name="Changes", exact=True)
    expect(changes.get_by_role("row", name="train.lr 0.01 0.005")).to_be_visible()
    expect(changes.get_by_role("row")).to_have_count(3)
    page.get_by_role("button", name=SUBMIT).click()
    clone, parent = (dashboard.api.by("alice").get(f"/jobs/{job_id}").json() for job_id in (job_of(page), trained[0]))
    dashboard.api.by("alice").post(f"/jobs/{clone['id']}/cancel")
    assert clone["parent_id"] == parent["id"]
    assert clone["spec"]["train"] == parent["spec"]["train"] | {"lr": 0.005}
    assert (clone["spec"]["host"], clone["labels"]) == ("alpha", parent["labels"])


@pytest.mark.parametrize("user", ["alice", "bob"])
def test_a_new_job_begins_from_a_checkpoint_of_another_whosever_that_is(
    visits: Visits, dashboard: Dashboard, trained: tuple[int, int], user: str
) -> None:
    checkpoint = dashboard.api.by("alice").get(f"/jobs/{trained[0]}/checkpoints").json()["items"][-1]
    page = visits.by(user).open(f"/jobs/{trained[0]}/checkpoints")
    page.get_by_role("link", name=f"New job from here, checkpoint {checkpoint['id']}").click()
    field(page, "Epochs").fill("3")
    expect(page.get_by_role("region", name="Dry run")).to_contain_text("It would start now")
    page.get_by_role("button", name=SUBMIT).click()
    begun = dashboard.api.by(user).get(f"/jobs/{job_of(page)}").json()
    dashboard.api.by(user).post(f"/jobs/{begun['id']}/cancel")
    assert (begun["user"], begun["parent_checkpoint_id"]) == (user, checkpoint["id"])


def test_a_draft_survives_a_reload_and_a_double_click_submits_once(visits: Visits, dashboard: Dashboard) -> None:
    page = visits.by("alice").open("/jobs/new")
    fill(page, {"Model": "resnet18", "Data": "digits", "Name": "only one"})
    page.get_by_label("Train on").select_option("the CPU")
    page.reload()
    expect(field(page, "Name")).to_have_value("only one")
    page.get_by_role("button", name=SUBMIT).dblclick()
    job_id = job_of(page)
    dashboard.api.by("alice").post(f"/jobs/{job_id}/cancel")
    found = dashboard.api.by("alice").get("/jobs", params={"name": "only one"}).json()["items"]
    assert [job["id"] for job in found] == [job_id]
