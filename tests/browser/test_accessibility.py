"""What axe finds of WCAG 2.1 A and AA: nothing, on any page, in light and in dark, with dialogs open and without."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.accessibility import assert_accessible
from tests.browser.forms import fill
from tests.browser.places import PLACES, expect_ready
from tests.browser.scene import Scene
from tests.browser.visits import Visits
from tests.integration.guarded_api import GuardedApi
from tests.receiver import Receiver

AT_REST = "document.getAnimations().every(each => each.effect.getComputedTiming().endTime === Infinity)"
"""Whether nothing is on its way from one colour or place to another; what spins until an answer comes is at rest."""


def assert_accessible_in_both(page: Page, what: str) -> None:
    for colours in ("light", "dark"):
        page.emulate_media(color_scheme=colours, reduced_motion="reduce")
        expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", colours)
        page.wait_for_function(AT_REST)
        assert_accessible(page, f"{what}, {colours},")


@pytest.mark.parametrize("place", PLACES)
def test_every_page_and_tab_is_accessible_in_light_and_in_dark(visits: Visits, scene: Scene, place: str) -> None:
    page = visits.by("root", still=True).open(PLACES[place](scene))
    expect_ready(page)
    assert_accessible_in_both(page, place)


def test_the_form_to_sign_in_is_accessible_and_so_is_its_refusal(visits: Visits) -> None:
    visit = visits.by(None, still=True)
    visit.watch.expects(401, "/me")
    page = visit.open("/")
    page.get_by_role("textbox", name="Token").fill("rz_wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_be_visible()
    assert_accessible_in_both(page, "the form to sign in")


def test_what_is_said_of_a_page_that_there_is_not_is_accessible(visits: Visits) -> None:
    page = visits.by("root", still=True).open("/no/such/page")
    expect(page.get_by_text("There is no such page")).to_be_visible()
    assert_accessible_in_both(page, "no page")


def press(key: str) -> Callable[[Page], None]:
    return lambda page: page.keyboard.press(key)


def click(name: str) -> Callable[[Page], None]:
    return lambda page: page.get_by_role("button", name=name, exact=True).first.click()


def drain_any(page: Page) -> None:
    page.keyboard.press("Control+k")
    page.get_by_role("dialog", name="Commands").get_by_role("textbox").fill("Drain a host")
    page.get_by_role("option", name="Drain a host").click()
    expect(page.get_by_role("dialog", name="Drain a host")).to_be_visible()


def start_over(page: Page) -> None:
    fill(page, {"Name": "to be lost"})
    click("Start over")(page)


DIALOGS: dict[str, tuple[str, Callable[[Page], None]]] = {
    "palette": ("settings", press("Control+k")),
    "keys": ("settings", press("?")),
    "cancel": ("queued job", click("Cancel")),
    "priority and labels": ("running job", click("Priority and labels…")),
    "resume elsewhere": ("paused job", click("Resume elsewhere…")),
    "cancel selected": ("selected jobs", click("Cancel")),
    "remove a checkpoint": (
        "checkpoints",
        lambda page: page.get_by_role("button", name="Remove checkpoint").first.click(),
    ),
    "new token": ("access", click("New token")),
    "new webhook": ("webhooks", click("New webhook")),
    "drain": ("hosts", click("Drain alpha")),
    "drain a host": ("hosts", drain_any),
    "quarantine": ("hosts", click("Quarantine cuda:7 of alpha")),
    "remove a host": ("hosts", click("Remove alpha")),
    "revoke a token": ("access", click("Revoke of the tests of root")),
    "disable a user": ("users", click("Disable vera")),
    "start over": ("new job", start_over),
}


@pytest.mark.parametrize("dialog", DIALOGS)
def test_every_dialog_is_accessible_and_closed_by_escape(visits: Visits, scene: Scene, dialog: str) -> None:
    place, open_dialog = DIALOGS[dialog]
    page = visits.by("root", still=True).open(PLACES[place](scene))
    expect_ready(page)
    open_dialog(page)
    expect(page.get_by_role("dialog")).to_be_visible()
    assert_accessible_in_both(page, f"the dialog {dialog}")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_token_is_shown_once_accessibly(visits: Visits) -> None:
    page = visits.by("root", still=True).open("/access")
    page.get_by_role("button", name="New token").click()
    page.get_by_role("textbox", name="Name", exact=True).fill("looked at")
    page.get_by_role("button", name="Make it").click()
    expect(page.get_by_role("button", name="I have copied it")).to_be_visible()
    assert_accessible_in_both(page, "a token that is shown once")


def test_secrets_and_the_question_before_one_is_removed_are_accessible(visits: Visits, api: GuardedApi) -> None:
    assert api.by("root").put("/secrets/LOOKED_AT", json={"value": "hidden"}).is_success
    page = visits.by("root", still=True).open("/access?section=secrets")
    remove = page.get_by_role("button", name="Remove LOOKED_AT")
    expect(remove).to_be_visible()
    assert_accessible_in_both(page, "secrets")
    remove.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    assert_accessible_in_both(page, "the question before a secret is removed")
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(remove).to_have_count(0)


def test_a_webhook_its_delivery_its_key_and_its_questions_are_accessible(visits: Visits) -> None:
    page = visits.by("root", still=True).open("/webhooks")
    with Receiver() as receiver:
        page.get_by_role("button", name="New webhook").click()
        page.get_by_role("textbox", name="URL").fill(receiver.url)
        page.get_by_role("button", name="Add webhook").click()
        copied = page.get_by_role("button", name="I have copied it")
        expect(copied).to_be_visible()
        assert_accessible_in_both(page, "a key that is shown once")
        copied.click()
        row = page.get_by_role("row").filter(has_text=receiver.url)
        row.get_by_role("button", name="Test").click()
        page.get_by_role("button", name="Details").first.click()
        expect(page.get_by_label("Body of the message")).to_be_visible()
        assert_accessible_in_both(page, "a delivery")
        for verb in ("Another key", "Delete"):
            row.get_by_role("button", name=verb).click()
            expect(page.get_by_role("dialog")).to_be_visible()
            assert_accessible_in_both(page, f"the question before {verb}")
            page.keyboard.press("Escape")
            expect(page.get_by_role("dialog")).to_have_count(0)
        row.get_by_role("button", name="Delete").click()
        page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        expect(row).to_have_count(0)


def test_a_log_line_that_was_found_and_an_open_table_of_values_are_accessible(visits: Visits, scene: Scene) -> None:
    page = visits.by("root", still=True).open(f"/jobs/{scene.running}/logs")
    page.get_by_role("searchbox", name="Search").fill("green")
    page.get_by_role("button", name="Search all output").click()
    expect(page.get_by_role("region", name="Lines that were found")).to_be_visible()
    assert_accessible_in_both(page, "what was found in a log")
    page.goto(page.url.partition("/logs")[0] + "/metrics?scale=log&smoothing=0.5")
    expect(page.get_by_label("Logarithmic")).to_be_checked()
    page.get_by_role("button", name="Values of train/loss").click()
    expect(page.get_by_role("region", name="Values of train/loss")).to_be_visible()
    assert_accessible_in_both(page, "a table of values")
