"""Tokens, users, secrets, the audit, and webhooks: what those who may do with them in the dashboard."""

import httpx2
from playwright.sync_api import Page, expect
from standardwebhooks.webhooks import Webhook

from tests.browser.dashboard import Dashboard
from tests.browser.visits import Visits
from tests.receiver import Receiver
from tests.waiting import wait_until


def shown_once(page: Page, what: str) -> str:
    """Return the text that is shown once in a dialog, and close it."""
    text = page.get_by_role("dialog").get_by_label(what, exact=True).inner_text()
    page.get_by_role("button", name="I have copied it").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    return text


def status_of(dashboard: Dashboard, token: str) -> int:
    headers = {"Authorization": f"Bearer {token}"}
    return httpx2.get(f"{dashboard.api.url}/me", headers=headers).status_code


def test_a_token_is_made_shown_once_and_revoked(visits: Visits, dashboard: Dashboard) -> None:
    page = visits.by("alice").open("/access")
    expect(page.get_by_role("main")).to_contain_text("You are alice, with the role submitter")
    page.get_by_role("button", name="New token").click()
    page.get_by_role("textbox", name="Name", exact=True).fill("nightly")
    page.get_by_role("combobox", name="Role", exact=True).select_option("viewer")
    page.get_by_role("button", name="Make it").click()
    token = shown_once(page, "token")
    assert status_of(dashboard, token) == 200
    row = page.get_by_role("row").filter(has_text="nightly")
    expect(row).to_contain_text("viewer")
    expect(row).to_contain_text("counts")
    assert token not in page.content()
    row.get_by_role("button", name="Revoke nightly of alice").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(row).to_contain_text("revoked")
    assert status_of(dashboard, token) == 401


def test_an_admin_adds_a_user_makes_a_token_for_them_and_disables_them(visits: Visits, dashboard: Dashboard) -> None:
    page = visits.by("root").open("/access?section=users")
    page.get_by_role("textbox", name="Name of a new user").fill("erin")
    page.get_by_role("combobox", name="Role", exact=True).select_option("viewer")
    page.get_by_role("button", name="Add user").click()
    row = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name="erin", exact=True))
    expect(row).to_be_visible()
    page.get_by_role("radiogroup", name="Section").get_by_text("Tokens").click()
    page.get_by_role("button", name="New token").click()
    page.get_by_role("textbox", name="Name", exact=True).fill("first")
    page.get_by_role("combobox", name="User", exact=True).select_option("erin")
    page.get_by_role("button", name="Make it").click()
    token = shown_once(page, "token")
    assert status_of(dashboard, token) == 200
    page.get_by_role("radiogroup", name="Section").get_by_text("Users").click()
    page.get_by_role("combobox", name="Role of erin").select_option("submitter")
    expect(page.get_by_role("region", name="Notices")).to_contain_text("erin is submitter")
    row.get_by_role("button", name="Disable erin").click()
    page.get_by_role("dialog").get_by_role("button", name="Disable").click()
    expect(row).to_contain_text("disabled")
    assert status_of(dashboard, token) == 401


def test_a_secret_is_stored_and_never_shown_again(visits: Visits) -> None:
    page = visits.by("root").open("/access?section=secrets")
    page.get_by_role("textbox", name="Name", exact=True).fill("wandb")
    page.get_by_role("textbox", name="What it holds").fill("very secret")
    page.get_by_role("button", name="Store secret").click()
    row = page.get_by_role("row").filter(has_text="wandb")
    expect(row).to_contain_text("root")
    assert "very secret" not in page.content()
    row.get_by_role("button", name="Remove wandb").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(row).to_have_count(0)


def test_the_audit_tells_what_was_done_and_what_was_refused(visits: Visits, dashboard: Dashboard) -> None:
    assert dashboard.api.by("vera").post("/hosts/alpha/drain").status_code == 403
    page = visits.by("root").open("/access?section=audit")
    page.get_by_role("textbox", name="Who", exact=True).fill("vera")
    row = page.get_by_role("row").filter(has_text="drain_host").first
    expect(row).to_contain_text("refused")
    expect(row).to_contain_text("hosts/alpha")


def test_who_is_no_admin_is_shown_their_own_tokens_alone(visits: Visits) -> None:
    page = visits.by("vera").open("/access?section=users")
    expect(page.get_by_role("region", name="Tokens")).to_be_visible()
    expect(page.get_by_text("Users", exact=True)).to_have_count(0)
    expect(page.get_by_role("row").filter(has_text="root")).to_have_count(0)
    page.goto(page.url.replace("/access", "/webhooks"))
    expect(page.get_by_role("main")).to_contain_text("Webhooks are for admins")


def test_a_webhook_is_added_tested_and_given_another_key_that_signs_from_then_on(visits: Visits) -> None:
    page = visits.by("root").open("/webhooks")
    with Receiver() as receiver:
        page.get_by_role("button", name="New webhook").click()
        page.get_by_role("textbox", name="URL").fill(receiver.url)
        page.get_by_label("Description", exact=True).fill("of the tests")
        page.get_by_role("button", name="Add webhook").click()
        keys = [shown_once(page, "key")]
        row = page.get_by_role("row").filter(has_text=receiver.url)
        expect(row).to_contain_text("of the tests")
        row.get_by_role("button", name="Test").click()
        delivery = page.get_by_role("row").filter(has_text="webhook.test")
        expect(delivery.first).to_be_visible()
        wait_until(lambda: receiver.requests, timeout_s=30, what="the first message")
        row.get_by_role("button", name="Another key").click()
        page.get_by_role("dialog").get_by_role("button", name="Make another key").click()
        keys.append(shown_once(page, "key"))
        row.get_by_role("button", name="Test").click()
        wait_until(lambda: len(receiver.requests) >= 2, timeout_s=30, what="the second message")
        assert keys[0] != keys[1]
        for key, request in zip(keys, receiver.requests, strict=True):
            Webhook(key).verify(request.body, request.headers)
        row.get_by_role("button", name="Delete").click()
        page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        expect(row).to_have_count(0)
