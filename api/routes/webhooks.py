"""Webhooks: registering URLs that are told of what happens to jobs, and what became of each message to them."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from api.access import Admin
from api.errors import CONFLICT, EDITED_SINCE, NOT_MODIFIED
from api.etags import IfMatch, Tags
from api.integers import IN_DIGITS
from api.keys import IdempotencyKey
from api.pages import Page, PageQuery, read_page
from api.queries import MAX_ID
from api.session import reading, writing
from api.webhooks import Delivery, SignedWebhook, Webhook, WebhookChanges, WebhookSetting
from jobs import tables
from jobs.store import audit, deliveries, idempotency, webhooks

router = APIRouter(prefix="/webhooks", tags=["webhooks"])

WebhookId = Annotated[int, Path(ge=1, le=MAX_ID, description="Id of the webhook."), IN_DIGITS]
DeliveryId = Annotated[int, Path(ge=1, le=MAX_ID, description="Id of the delivery."), IN_DIGITS]


@router.post("", status_code=201, summary="Register a webhook", responses=CONFLICT)
def create_webhook(setting: WebhookSetting, response: Response, by: Admin, key: IdempotencyKey = None) -> SignedWebhook:
    """Register a URL, and return it with the key that signs its messages, which nobody is shown again but who sends
    this again under its `Idempotency-Key`.

    Refused while the service has no key of its own to seal that with.
    """
    values = setting.model_dump(mode="json")
    with writing() as session:
        webhook, signing_key = idempotency.once(
            session,
            key,
            webhooks.ADDED,
            setting,
            lambda: webhooks.add(session, **values, created_by=by.user),
            by=by,
        )
        audit.record(session, by, "create_webhook", f"webhooks/{webhook.id}", **values)
    response.headers["Location"] = f"/webhooks/{webhook.id}"
    response.headers["Cache-Control"] = "no-store"
    return _signed(webhook, signing_key)


@router.get("", summary="List webhooks")
def list_webhooks(query: Annotated[PageQuery, Query()], _: Admin) -> Page[Webhook]:
    """Return one page of the webhooks, oldest first."""
    with reading() as session:
        return read_page(session, webhooks.select_webhooks(), query, Webhook)


@router.get("/{webhook_id}", summary="Show a webhook", responses=NOT_MODIFIED)
def get_webhook(webhook_id: WebhookId, _: Admin, tags: Tags) -> Webhook:
    """Return one webhook."""
    with reading() as session:
        webhook = Webhook.model_validate(webhooks.get(session, webhook_id))
    return tags.shown(webhook, **_edited(webhook))


@router.patch("/{webhook_id}", summary="Change a webhook", responses=EDITED_SINCE)
def change_webhook(webhook_id: WebhookId, changes: WebhookChanges, by: Admin, expected: IfMatch) -> Webhook:
    """Change a webhook and return it; what it has not been told yet goes to its new URL."""
    with writing() as session:
        expected.check(f"webhook {webhook_id}", **_edited(webhooks.get(session, webhook_id, held=True)))
        audit.record(session, by, "change_webhook", f"webhooks/{webhook_id}", **changes.values)
        webhook = Webhook.model_validate(webhooks.change(session, webhook_id, changes.values))
    return expected.changed(webhook, **_edited(webhook))


@router.delete("/{webhook_id}", status_code=204, summary="Remove a webhook", responses=EDITED_SINCE)
def delete_webhook(webhook_id: WebhookId, by: Admin, expected: IfMatch) -> None:
    """Remove a webhook; what it has not been told yet is given up."""
    with writing() as session:
        expected.check(f"webhook {webhook_id}", **_edited(webhooks.get(session, webhook_id, held=True)))
        audit.record(session, by, "delete_webhook", f"webhooks/{webhook_id}")
        webhooks.remove(session, webhook_id)


@router.post("/{webhook_id}/rotate", summary="Give a webhook another key", responses=CONFLICT)
def rotate_webhook_key(webhook_id: WebhookId, response: Response, by: Admin) -> SignedWebhook:
    """Replace the key of a webhook, and return the new one, which signs every try from now on."""
    with writing() as session:
        audit.record(session, by, "rotate_webhook_key", f"webhooks/{webhook_id}")
        webhook, key = webhooks.rotate(session, webhook_id)
    response.headers["Cache-Control"] = "no-store"
    return _signed(webhook, key)


@router.post("/{webhook_id}/test", summary="Send a webhook a test", responses=CONFLICT)
def test_webhook(webhook_id: WebhookId, by: Admin) -> Delivery:
    """Have a message of the topic `webhook.test` sent, whatever topics are registered, and return its delivery."""
    with writing() as session:
        audit.record(session, by, "test_webhook", f"webhooks/{webhook_id}")
        return Delivery.model_validate(deliveries.add_test(session, webhook_id))


@router.get("/{webhook_id}/deliveries", summary="List a webhook's deliveries")
def list_deliveries(webhook_id: WebhookId, query: Annotated[PageQuery, Query()], _: Admin) -> Page[Delivery]:
    """Return one page of what a webhook was told or is to be told, newest first, each with all of its tries."""
    with reading() as session:
        webhooks.get(session, webhook_id)
        return read_page(session, deliveries.select_deliveries(webhook_id), query, Delivery)


@router.post("/{webhook_id}/deliveries/{delivery_id}/redeliver", summary="Deliver a message again", responses=CONFLICT)
def redeliver(webhook_id: WebhookId, delivery_id: DeliveryId, by: Admin) -> Delivery:
    """Have a message sent once more, whatever became of it, with the same `webhook-id`; return its delivery."""
    with writing() as session:
        audit.record(session, by, "redeliver", f"webhooks/{webhook_id}/deliveries/{delivery_id}")
        return Delivery.model_validate(deliveries.redeliver(session, webhook_id, delivery_id))


def _signed(webhook: tables.Webhook, key: str) -> SignedWebhook:
    return SignedWebhook(**Webhook.model_validate(webhook).model_dump(), key=key)


def _edited(webhook: tables.Webhook | Webhook) -> dict[str, object]:
    """What admins edit of a webhook."""
    return {name: getattr(webhook, name) for name in WebhookChanges.model_fields}
