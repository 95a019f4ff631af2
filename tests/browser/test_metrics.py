"""A job's curves in its page, and those of several jobs beside one another."""

import csv
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.charts import chart, inked, last_step, values
from tests.browser.dashboard import Dashboard
from tests.browser.talks import Talks
from tests.browser.visits import Visits


def test_values_appear_as_they_are_measured(visits: Visits, talks: Talks) -> None:
    talk = talks.begin()
    talk.measure(1, **{"train/loss": 2.5})
    page = visits.by("vera").open(f"/jobs/{talk.id}/metrics")
    page.get_by_role("button", name="Values of train/loss").click()
    assert last_step(page, "train/loss") == 1
    talk.measure(2, **{"train/loss": 1.25, "val/accuracy": 0.5})
    expect(
        values(page, "train/loss").get_by_role("row", name="train/loss 1.25 at 2 1.25 at 2 2.5 at 1 0")
    ).to_be_visible()
    expect(chart(page, "val/accuracy")).to_be_visible()


def test_values_that_are_not_finite_are_told_and_leave_a_gap(visits: Visits, talks: Talks) -> None:
    talk = talks.begin()
    for step, value in enumerate((1.0, 2.0, float("nan"), float("inf"), float("-inf"), 3.0), start=1):
        talk.measure(step, loss=value)
    page = visits.by("vera").open(f"/jobs/{talk.id}/metrics")
    page.get_by_role("button", name="Values of loss").click()
    assert last_step(page, "loss", beyond=5) == 6
    expect(values(page, "loss").get_by_role("row", name="loss 3 at 6 1 at 1 3 at 6 3")).to_be_visible()
    expect(chart(page, "loss")).to_contain_text("3 of the values shown are not finite")


def test_how_the_charts_are_shown_is_in_the_address_and_is_there_again_after_a_reload(
    visits: Visits, trained: tuple[int, int]
) -> None:
    visit = visits.by("vera", still=True)
    page = visit.open(f"/jobs/{trained[0]}/metrics")
    expect(chart(page, "train/loss")).to_be_visible()
    assert inked(page, "train/loss") > 500
    page.get_by_label("Axis").select_option("Epoch")
    page.get_by_label("Logarithmic").check()
    page.get_by_label("Training with validation").check()
    page.get_by_label("Smoothing").fill("0.6")
    page.get_by_role("button", name="Zoom in").click()
    expect(page.get_by_role("button", name="Show all")).to_be_enabled()
    page.wait_for_url(lambda address: address.count("=") >= 5)
    page.reload()
    expect(page.get_by_label("Axis")).to_have_value("epoch")
    expect(page.get_by_label("Logarithmic")).to_be_checked()
    expect(page.get_by_label("Training with validation")).to_be_checked()
    expect(page.get_by_label("Smoothing 0.60")).to_be_visible()
    expect(page.get_by_role("button", name="Show all")).to_be_enabled()


def test_a_chart_is_saved_as_a_picture_and_as_all_of_its_values(
    visits: Visits, trained: tuple[int, int], tmp_path: Path
) -> None:
    page = visits.by("vera").open(f"/jobs/{trained[0]}/metrics")
    expect(chart(page, "train/loss")).to_be_visible()
    files = {}
    for kind in ("PNG", "CSV"):
        with page.expect_download() as download:
            page.get_by_role("button", name=f"{kind} of train/loss").click()
        files[kind] = tmp_path / download.value.suggested_filename
        download.value.save_as(files[kind])
    assert files["PNG"].read_bytes().startswith(b"\x89PNG\r\n")
    with files["CSV"].open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["step"]) for row in rows] == list(range(1, 47))


def test_two_jobs_are_compared_by_their_curves_their_values_and_what_differs(
    visits: Visits, trained: tuple[int, int], dashboard: Dashboard
) -> None:
    first, second = trained
    visit = visits.by("vera")
    page = visit.open(f"/compare?jobs={first}")
    page.get_by_label("Add a job").fill("digits-0.02")
    page.get_by_role("option", name=f"#{second}").click()
    visit.expect_at(f"/compare?jobs={first},{second}")
    loss = chart(page, "train/loss")
    expect(loss.get_by_role("button", name=f"#{first} digits-0.01")).to_be_visible()
    expect(loss.get_by_role("button", name=f"#{second} digits-0.02")).to_be_visible()
    final = page.get_by_role("region", name="Final metrics").get_by_role("row", name="val/accuracy")
    for column, job_id in enumerate(trained):
        names = dashboard.api.by("vera").get(f"/jobs/{job_id}/metrics/names").json()["items"]
        (accuracy,) = (each["last_value"] for each in names if each["name"] == "val/accuracy")
        shown = final.get_by_role("cell").nth(column).inner_text().split()[0]
        assert abs(float(shown) - accuracy) < 1e-3
    differences = page.get_by_role("region", name="Differences of the specs").get_by_role("row")
    expect(differences).to_have_count(2)
    expect(differences.nth(1)).to_contain_text("lr")
    page.get_by_role("button", name=f"Remove job {first}").click()
    visit.expect_at(f"/compare?jobs={second}")
