"""The keyboard: keys that go to pages, the list of keys, the palette of commands."""

from playwright.sync_api import expect

from tests.browser.visits import Visits

PAGES = {"g j": "Jobs", "g n": "New job", "g c": "Compare", "g h": "Hosts", "g a": "Access", "g s": "Settings"}


def test_two_keys_one_after_another_go_to_each_page(visits: Visits) -> None:
    page = visits.by("alice").open("/settings")
    for keys, title in PAGES.items():
        expect(page.get_by_role("status", name="Connection")).to_have_text("Live")
        page.keyboard.type(keys.replace(" ", ""))
        expect(page.get_by_role("heading", level=1)).to_contain_text(title)


def test_the_keys_are_listed_by_a_question_mark(visits: Visits) -> None:
    page = visits.by("alice").open("/settings")
    expect(page.get_by_role("heading", level=1, name="Settings")).to_be_visible()
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keys")
    expect(keys.get_by_role("row", name="g j Jobs")).to_be_visible()
    page.keyboard.press("Escape")
    expect(keys).to_be_hidden()


def test_keys_that_are_typed_into_a_field_are_text(visits: Visits) -> None:
    page = visits.by("alice").open("/settings")
    zone = page.get_by_role("combobox", name="Time zone")
    zone.fill("")
    zone.press_sequentially("gh?k")
    expect(zone).to_have_value("gh?k")
    expect(page.get_by_role("heading", level=1, name="Settings")).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_the_palette_goes_to_a_page_by_its_name(visits: Visits) -> None:
    page = visits.by("alice").open("/settings")
    expect(page.get_by_role("heading", level=1, name="Settings")).to_be_visible()
    page.keyboard.press("Control+k")
    words = page.get_by_role("dialog", name="Commands").get_by_role("textbox")
    expect(words).to_be_focused()
    words.fill("host")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1, name="Hosts")).to_be_visible()


def test_the_palette_finds_a_job_by_its_name_and_by_its_number(visits: Visits) -> None:
    visit = visits.by("alice")
    page = visit.open("/settings")
    expect(page.get_by_role("heading", level=1, name="Settings")).to_be_visible()
    job_id = visits.api.submit_by("alice", name="needle in a haystack", host="nowhere")
    for words in ("needle", f"#{job_id}"):
        page.keyboard.press("Control+k")
        page.get_by_role("dialog", name="Commands").get_by_role("textbox").fill(words)
        page.get_by_role("option", name="needle in a haystack").click()
        visit.expect_at(f"/jobs/{job_id}")
    visits.api.by("alice").post(f"/jobs/{job_id}/cancel")


def test_a_viewer_is_offered_no_command_that_their_role_does_not_have(visits: Visits) -> None:
    page = visits.by("vera").open("/settings")
    expect(page.get_by_role("heading", level=1, name="Settings")).to_be_visible()
    page.keyboard.press("Control+k")
    dialog = page.get_by_role("dialog", name="Commands")
    expect(dialog.get_by_role("option", name="Hosts")).to_be_visible()
    expect(dialog.get_by_role("option", name="New job")).to_have_count(0)
    expect(dialog.get_by_role("option", name="Webhooks")).to_have_count(0)


def test_the_palette_is_closed_by_escape_and_gives_the_focus_back(visits: Visits) -> None:
    page = visits.by("alice").open("/settings")
    commands = page.get_by_role("button", name="Commands")
    commands.click()
    expect(page.get_by_role("dialog", name="Commands").get_by_role("textbox")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(commands).to_be_focused()
