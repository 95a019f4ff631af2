"""One job's page: what it is told to do, why it failed, and its checkpoints."""

from hashlib import sha256
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.dashboard import Dashboard
from tests.browser.states import START_MS, expect_state
from tests.browser.talks import Talks
from tests.browser.visits import Visits


def test_a_running_job_is_cancelled_once_that_is_confirmed(visits: Visits, talks: Talks) -> None:
    talk = talks.begin("alice", name="to be cancelled")
    page = visits.by("alice").open(f"/jobs/{talk.id}")
    expect_state(page, "running")
    page.get_by_role("button", name="Cancel", exact=True).click()
    question = page.get_by_role("dialog", name=f"Cancel job {talk.id}?")
    question.get_by_role("button", name="Keep it").click()
    expect(question).to_be_hidden()
    expect_state(page, "running")
    page.get_by_role("button", name="Cancel", exact=True).click()
    question.get_by_role("button", name="Cancel the job").click()
    expect_state(page, "cancelled")
    expect(page.get_by_role("button", name="Cancel", exact=True)).to_have_count(0)
    expect(page).to_have_title(f"cancelled · to be cancelled #{talk.id} · RankZero")


def test_a_waiting_job_is_paused_resumed_elsewhere_and_given_a_priority(
    visits: Visits, talks: Talks, dashboard: Dashboard
) -> None:
    talk = talks.begin("alice", waits=True, host="nowhere")
    page = visits.by("alice").open(f"/jobs/{talk.id}")
    expect_state(page, "queued")
    page.get_by_role("button", name="Pause", exact=True).click()
    expect_state(page, "paused")
    page.get_by_role("button", name="Priority and labels…").click()
    dialog = page.get_by_role("dialog", name="Priority and labels")
    dialog.get_by_role("spinbutton", name="Priority").fill("70")
    dialog.get_by_role("button", name="Add a label").click()
    dialog.get_by_role("textbox", name="Key of label 1").fill("team")
    dialog.get_by_role("textbox", name="Value of label 1").fill("vision")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_be_hidden()
    job = dashboard.service.job(talk.id)
    assert (job.priority, job.labels) == (70, {"team": "vision"})
    page.get_by_role("button", name="Resume elsewhere…").click()
    page.get_by_role("combobox", name="Host", exact=True).select_option("alpha")
    page.get_by_role("dialog").get_by_role("button", name="Resume").click()
    expect_state(page, "running")


def test_a_failed_job_says_why_and_is_tried_again(visits: Visits, talks: Talks) -> None:
    talk = talks.begin("alice")
    page = visits.by("alice").open(f"/jobs/{talk.id}")
    expect_state(page, "running")
    talk.say("the last line before the end")
    talk.fail("no such thing as <b>luck</b>")
    expect_state(page, "failed")
    main = page.get_by_role("main")
    expect(main).to_contain_text("ValueError: no such thing as <b>luck</b>")
    expect(main).to_contain_text("Traceback (most recent call last)")
    expect(main).to_contain_text("the last line before the end")
    expect(main).to_contain_text("rank 0")
    page.get_by_role("button", name="Retry", exact=True).click()
    page.get_by_role("navigation", name="Parts of the job").get_by_role("link", name="Timeline").click()
    expect(main).to_contain_text("Queued again by hand")
    # It does what it did before: its orders are the same.
    for number in (1, 2):
        attempt = page.get_by_role("row").filter(has=page.get_by_role("link", name=f"Attempt {number}, its log"))
        expect(attempt).to_contain_text("no such thing as <b>luck</b>", timeout=START_MS)
    expect_state(page, "failed")


def test_a_checkpoint_is_downloaded_as_it_was_saved(
    visits: Visits, dashboard: Dashboard, trained: tuple[int, int], tmp_path: Path
) -> None:
    with dashboard.client("vera") as client:
        (best,) = (each for each in client.checkpoints(trained[0]) if each.best)
    page = visits.by("vera").open(f"/jobs/{trained[0]}/checkpoints")
    row = page.get_by_role("row").filter(
        has=page.get_by_role("button", name=f"Download checkpoint {best.id}", exact=True)
    )
    expect(row).to_contain_text("best")
    with page.expect_download() as download:
        row.get_by_role("button", name="Download checkpoint").click()
    path = tmp_path / "checkpoint"
    download.value.save_as(path)
    assert sha256(path.read_bytes()).hexdigest() == best.sha256
    row.get_by_role("button", name=f"copy the SHA-256 of checkpoint {best.id}").click()
    expect(row.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == best.sha256


def test_a_job_that_there_is_not_is_told_in_words(visits: Visits) -> None:
    visit = visits.by("alice")
    visit.watch.expects(404, "/jobs/999999")
    page = visit.open("/jobs/999999")
    expect(page.get_by_role("main")).to_contain_text("There is no job 999999")


def test_a_name_that_looks_like_markup_is_shown_as_it_was_written(visits: Visits, talks: Talks) -> None:
    name = "<script>alert(1)</script> & “ünï” 🚀 " + "n" * 200
    talk = talks.begin("alice", waits=True, host="nowhere", name=name)
    visit = visits.by("alice")
    page = visit.open(f"/jobs/{talk.id}")
    expect(page.get_by_role("heading", level=1)).to_contain_text(name)
    assert page.title() == f"queued · {name} #{talk.id} · RankZero"
