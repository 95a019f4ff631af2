"""Webhooks: storing, finding, changing and removing them."""

from collections.abc import Collection
from typing import Any

from sqlalchemy import Select, select, update
from sqlalchemy.orm import Session

from jobs.database import now
from jobs.errors import NotFoundError, StateConflictError
from jobs.sealing import seal, unseal
from jobs.store.idempotency import Kind
from jobs.store.transitions import changed
from jobs.tables import Delivery, Webhook
from jobs.webhooks import new_signing_key


def add(
    session: Session,
    *,
    url: str,
    topics: Collection[str],
    labels: dict[str, str],
    description: str | None,
    enabled: bool,
    created_by: str | None,
) -> tuple[Webhook, str]:
    """Store a webhook, and return it with the key that signs its messages: only who asks again under its
    idempotency key is shown that once more.

    Raises NoKeyError where the service has no key to seal that with.
    """
    key = new_signing_key()
    at = now(session)
    webhook = Webhook(
        url=url,
        topics=sorted(set(topics)),
        labels=labels,
        description=description,
        sealed_key=seal(key),
        enabled=enabled,
        created_at=at,
        updated_at=at,
        created_by=created_by,
    )
    session.add(webhook)
    session.flush()
    return webhook, key


def get(session: Session, webhook_id: int, *, held: bool = False) -> Webhook:
    """Return a webhook. Raises NotFoundError, also for one that was removed.

    With its row `held`, changes of it come one after the other; deliveries are written meanwhile.
    """
    query = _live().where(Webhook.id == webhook_id)
    if held:
        query = query.with_for_update(key_share=True)
    webhook = session.scalars(query, execution_options={"populate_existing": True}).one_or_none()
    if webhook is None:
        raise NotFoundError(f"no webhook {webhook_id}")
    return webhook


def _again(session: Session, webhook_id: str) -> tuple[Webhook, str]:
    try:
        webhook = get(session, int(webhook_id))
    except NotFoundError as error:
        raise StateConflictError(
            f"webhook {webhook_id}, which was made under this key, was removed; take another key"
        ) from error
    return webhook, unseal(webhook.sealed_key)


ADDED = Kind[tuple[Webhook, str]]("webhooks", id_of=lambda added: added[0].id, again=_again)


def select_webhooks() -> Select[Webhook]:
    """Return the query for all webhooks, oldest first."""
    return _live().order_by(Webhook.id)


def change(session: Session, webhook_id: int, values: dict[str, Any]) -> Webhook:
    """Set columns of a webhook and return it; one that is disabled is told nothing more. Raises NotFoundError."""
    webhook = get(session, webhook_id, held=True)
    for name, value in values.items():
        setattr(webhook, name, value)
    webhook.updated_at = now(session)
    if not webhook.enabled:
        give_up_all(session, webhook)
    session.flush()
    return webhook


def rotate(session: Session, webhook_id: int) -> tuple[Webhook, str]:
    """Give a webhook another key, and return both: each try from now on is signed with it alone.

    Raises NotFoundError, and NoKeyError where the service has no key to seal that with.
    """
    webhook = get(session, webhook_id, held=True)
    key = new_signing_key()
    webhook.sealed_key = seal(key)
    webhook.updated_at = now(session)
    session.flush()
    return webhook, key


def remove(session: Session, webhook_id: int) -> None:
    """Remove a webhook; the row stays for the deliveries that name it. Raises NotFoundError."""
    webhook = get(session, webhook_id, held=True)
    webhook.deleted_at = webhook.updated_at = now(session)
    webhook.enabled = False
    give_up_all(session, webhook)
    session.flush()


def give_up_all(session: Session, webhook: Webhook) -> None:
    """Give up whatever a webhook has not been told yet."""
    pending = update(Delivery).where(Delivery.webhook_id == webhook.id, Delivery.due_at.is_not(None))
    changed(session, pending.values(due_at=None, claimed_at=None, given_up_at=now(session)))


def _live() -> Select[Webhook]:
    return select(Webhook).where(Webhook.deleted_at.is_(None))
