"""What the ranks of a job print, as it is followed, searched and downloaded in its page."""

from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from tests.browser.talks import Talks
from tests.browser.visits import Visits


def output(page: Page) -> Locator:
    return page.get_by_role("log", name="Output")


def test_new_lines_come_as_they_are_printed_and_each_once(visits: Visits, talks: Talks) -> None:
    talk = talks.begin()
    talk.say("line 1 of the test")
    page = visits.by("vera").open(f"/jobs/{talk.id}/logs")
    expect(output(page)).to_contain_text("line 1 of the test")
    talk.say("line 2 of the test", "line 3 of the test")
    expect(output(page)).to_contain_text("line 3 of the test")
    for number in (1, 2, 3):
        expect(output(page).get_by_text(f"line {number} of the test")).to_have_count(1)


def test_of_many_lines_the_last_are_shown_and_few_are_in_the_page(visits: Visits, talks: Talks) -> None:
    talk = talks.begin()
    talk.say(*(f"line {number} of many" for number in range(1, 3001)))
    page = visits.by("alice").open(f"/jobs/{talk.id}/logs")
    expect(output(page).get_by_text("line 3000 of many")).to_be_visible()
    assert output(page).get_by_text("of many").count() < 300
    output(page).focus()
    page.keyboard.press("Home")
    expect(output(page).get_by_text("line 1 of many")).to_be_visible()
    talk.say("a line that nobody follows")
    expect(page.get_by_text("3,001 lines")).to_be_visible()
    expect(output(page).get_by_text("line 1 of many")).to_be_visible()
    page.get_by_role("button", name="Follow").click()
    expect(output(page).get_by_text("a line that nobody follows")).to_be_visible()


def test_what_is_printed_while_it_is_paused_is_counted_and_shown_afterwards(visits: Visits, talks: Talks) -> None:
    talk = talks.begin()
    talk.say("before the pause")
    page = visits.by("alice").open(f"/jobs/{talk.id}/logs")
    expect(output(page)).to_contain_text("before the pause")
    page.get_by_role("button", name="Pause", exact=True).last.click()
    talk.say("first in the pause", "second in the pause")
    go_on = page.get_by_role("button", name="Go on (2 new)")
    expect(go_on).to_be_visible()
    expect(output(page)).not_to_contain_text("in the pause")
    go_on.click()
    expect(output(page)).to_contain_text("second in the pause")


def test_what_a_rank_prints_is_text_in_its_colours_and_never_markup(visits: Visits, talks: Talks) -> None:
    talk = talks.begin()
    talk.say(
        "\x1b[31mred\x1b[0m and plain",
        "<img src=x onerror=alert(1)><b>bold?</b>",
        "10%\r50%\r100% of the bar",
        "bell \a, tab\tand ünïcödé 🚀",
        "\x1b]8;;http://foreign.example/\x07link\x1b]8;;\x07",
        "long " + "x" * 30_000,
    )
    page = visits.by("alice").open(f"/jobs/{talk.id}/logs")
    log = output(page)
    expect(log).to_contain_text("<img src=x onerror=alert(1)><b>bold?</b>")
    expect(log.locator("img, b, a")).to_have_count(0)
    expect(log).not_to_contain_text("\x1b")
    expect(log).to_contain_text("red and plain")
    plain, red = (log.get_by_text(text, exact=True) for text in ("100% of the bar", "red"))
    colours = [each.evaluate("element => getComputedStyle(element).color") for each in (plain, red)]
    assert colours[0] != colours[1]
    expect(log).not_to_contain_text("50%")
    expect(log).to_contain_text("ünïcödé 🚀")
    log.get_by_role("button", name="Show all 30,005 characters").click()
    expect(log).to_contain_text("long " + "x" * 30_000)


def test_a_text_is_searched_here_and_in_all_of_the_output(visits: Visits, talks: Talks) -> None:
    talk = talks.begin()
    talk.say(*(f"{'needle' if number % 100 == 0 else 'hay'} {number}" for number in range(1, 501)))
    page = visits.by("alice").open(f"/jobs/{talk.id}/logs")
    expect(output(page).get_by_text("needle 500")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("Needle")
    expect(page.get_by_text("5 lines loaded here")).to_be_visible()
    page.get_by_role("button", name="Next match").click()
    expect(page.get_by_text("of 5 lines loaded here")).to_be_visible()
    page.get_by_role("button", name="Search all output").click()
    found = page.get_by_role("region", name="Lines that were found")
    expect(found.get_by_role("listitem")).to_have_count(5)
    found.get_by_role("listitem").filter(has_text="needle 200").get_by_role("button", name="Show").click()
    expect(output(page).get_by_text("needle 200")).to_be_visible()


def test_the_output_is_downloaded_with_the_token_of_who_looks(visits: Visits, talks: Talks, tmp_path: Path) -> None:
    talk = talks.begin()
    talk.say("to be kept")
    page = visits.by("vera").open(f"/jobs/{talk.id}/logs")
    expect(output(page)).to_contain_text("to be kept")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download", exact=True).click()
    path = tmp_path / "output.log"
    download.value.save_as(path)
    assert "to be kept" in path.read_text()
    assert download.value.suggested_filename == f"job-{talk.id}.log"
