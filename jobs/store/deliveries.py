"""Deliveries: which are due, who sends each, what came of it, and what is kept of that.

A worker claims a delivery before it sends it, by moving its `due_at` beyond the time that sending takes, and tells
afterwards what came of it. One that dies in between leaves it to be sent again: at least once, with the same id.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Select, and_, delete, func, select, update
from sqlalchemy.orm import Session, selectinload

from jobs.database import now
from jobs.errors import NotFoundError, StateConflictError
from jobs.store import outbox, webhooks
from jobs.store.transitions import changed
from jobs.tables import Delivery, DeliveryTry, Webhook

CLAIMED_S = 120
"""Seconds for which a claim counts: longer than any try takes, also one whose name server is silent."""
AT_ONCE = 4
"""Deliveries of one webhook that are being sent at once, over all workers."""
WAITS_S = (5, 30, 300, 1800, 7200, 18_000, 36_000, 36_000)
"""Seconds between one try and the next, as Standard Webhooks recommends; after the last of them it is given up."""
UNTOLD = "the workers that sent it have not lived to tell what came of it"
"""The error of a delivery that is given up after as many tries as others, with none after the last claim."""
JITTER = 0.2
"""Share of such a wait that is added to it at most: what failed together does not come back together."""


@dataclass(frozen=True)
class Claim:
    """A delivery that this process sends, and no other until it is over."""

    delivery_id: int
    webhook_id: int
    claimed_at: datetime
    url: str
    sealed_key: str
    message_id: str
    payload: dict[str, Any]


@dataclass(frozen=True)
class Try:
    """What came of sending a delivery once."""

    at: datetime
    took_ms: int
    status: int | None
    """HTTP status of the answer; None where there was none."""
    error: str | None = None

    @property
    def arrived(self) -> bool:
        return self.error is None


def due_webhooks(session: Session) -> Sequence[int]:
    """Return the webhooks that have something to be told now."""
    due = select(Delivery.webhook_id).where(Delivery.due_at <= now(session))
    return session.scalars(due.distinct().order_by(Delivery.webhook_id)).all()


def claim(session: Session, webhook_id: int) -> Claim | None:
    """Claim the delivery of a webhook that has been due for the longest.

    None where none is due, or as many as may be are being sent already.
    """
    # With the row held, two workers count one after the other.
    query = select(Webhook).where(Webhook.id == webhook_id).with_for_update(key_share=True)
    webhook = session.scalars(query, execution_options={"populate_existing": True}).one()
    if not webhook.enabled:
        webhooks.give_up_all(session, webhook)  # written by a transaction that did not know of it yet
        return None
    at = now(session)
    mine = Delivery.webhook_id == webhook_id
    being_sent = select(func.count()).where(mine, Delivery.claimed_at.is_not(None), Delivery.due_at > at)
    if session.execute(being_sent).scalar_one() >= AT_ONCE:
        return None
    due = select(Delivery).where(mine, Delivery.due_at <= at).order_by(Delivery.due_at, Delivery.id).limit(1)
    delivery = session.scalars(due, execution_options={"populate_existing": True}).one_or_none()
    if delivery is None:
        return None
    if delivery.tries > len(WAITS_S):  # and of the last of them nobody has told: what ends each worker would go on to
        _log(session, delivery.id, Try(at=at, took_ms=0, status=None, error=UNTOLD))
        delivery.due_at, delivery.claimed_at, delivery.given_up_at = None, None, at
        session.flush()
        return claim(session, webhook_id)
    delivery.claimed_at, delivery.due_at = at, at + timedelta(seconds=CLAIMED_S)
    delivery.tries += 1
    return Claim(
        delivery.id, webhook_id, at, webhook.url, webhook.sealed_key, delivery.message_id, dict(delivery.payload)
    )


def conclude(session: Session, claim: Claim, made: Try) -> None:
    """Write what came of sending a claimed delivery: it is over, or due again after a while.

    Where the claim had run out meanwhile, or somebody has it delivered anew, only what arrived counts.
    """
    at = now(session)
    delivery = session.get_one(Delivery, claim.delivery_id, populate_existing=True, with_for_update=True)
    _log(session, claim.delivery_id, made)
    if made.arrived:
        delivery.delivered_at, delivery.given_up_at = delivery.delivered_at or at, None
        delivery.due_at = delivery.claimed_at = None
    elif delivery.claimed_at == claim.claimed_at:
        delivery.claimed_at = None
        if delivery.tries <= len(WAITS_S):
            wait_s = WAITS_S[delivery.tries - 1] * random.uniform(1, 1 + JITTER)
            delivery.due_at = at + timedelta(seconds=wait_s)
        else:
            delivery.due_at, delivery.given_up_at = None, at


def _log(session: Session, delivery_id: int, made: Try) -> None:
    session.add(
        DeliveryTry(delivery_id=delivery_id, at=made.at, took_ms=made.took_ms, status=made.status, error=made.error)
    )


def release(session: Session, claim: Claim, *, wait_s: float) -> None:
    """Give back a claim of what this process cannot send, as if it had not been tried; any may claim it after a while.

    Longer than the interval at which others look, so that one of them comes first.
    """
    mine = and_(Delivery.id == claim.delivery_id, Delivery.claimed_at == claim.claimed_at)
    due_at = now(session) + timedelta(seconds=wait_s)
    values = {"claimed_at": None, "due_at": due_at, "tries": Delivery.tries - 1}
    changed(session, update(Delivery).where(mine).values(**values))


def disable(session: Session, webhook_id: int) -> None:
    """Tell a webhook nothing more, since it says that it is gone; one that was removed stays so."""
    webhook = session.get_one(Webhook, webhook_id, populate_existing=True, with_for_update={"key_share": True})
    webhook.enabled, webhook.updated_at = False, now(session)
    webhooks.give_up_all(session, webhook)


def select_deliveries(webhook_id: int) -> Select[Delivery]:
    """Return the query for a webhook's deliveries, newest first, each with its tries."""
    query = select(Delivery).where(Delivery.webhook_id == webhook_id).options(selectinload(Delivery.log))
    return query.order_by(Delivery.id.desc())


def add_test(session: Session, webhook_id: int) -> Delivery:
    """Write a message that tells of nothing, to be sent at once, and return its delivery.

    Raises NotFoundError, and StateConflictError where the webhook is disabled.
    """
    webhook = _enabled(session, webhook_id)
    delivery = outbox.add_test(session, webhook, at=now(session))
    return session.scalars(select_deliveries(webhook_id).where(Delivery.id == delivery.id)).one()


def redeliver(session: Session, webhook_id: int, delivery_id: int) -> Delivery:
    """Have a delivery sent once more, with the same id and all of its tries, and return it.

    Raises NotFoundError, and StateConflictError where the webhook is disabled.
    """
    _enabled(session, webhook_id)
    # Held, since a try that ends meanwhile would leave half of what it writes beside what is written here.
    mine = select_deliveries(webhook_id).where(Delivery.id == delivery_id).with_for_update()
    delivery = session.scalars(mine).one_or_none()
    if delivery is None:
        raise NotFoundError(f"webhook {webhook_id} has no delivery {delivery_id}")
    delivery.due_at = now(session)
    delivery.claimed_at = delivery.delivered_at = delivery.given_up_at = None
    delivery.tries = 0
    session.flush()
    return delivery


def forget(session: Session, *, older_than: timedelta, limit: int) -> int:
    """Delete deliveries that are over and older, with their tries, at most `limit` of them; return how many."""
    # Of the first that there are, not of all: no index has the time. Held, or one could be asked for anew meanwhile.
    first = select(Delivery.id, Delivery.created_at).where(Delivery.due_at.is_(None)).order_by(Delivery.id).limit(limit)
    bound = now(session) - older_than
    rows = session.execute(first.with_for_update(skip_locked=True)).all()
    ids = [row.id for row in rows if row.created_at < bound]
    if ids:
        session.execute(delete(DeliveryTry).where(DeliveryTry.delivery_id.in_(ids)))
        session.execute(delete(Delivery).where(Delivery.id.in_(ids)))
    return len(ids)


def _enabled(session: Session, webhook_id: int) -> Webhook:
    webhook = webhooks.get(session, webhook_id, held=True)
    if not webhook.enabled:
        raise StateConflictError(f"webhook {webhook.id} is disabled; enable it first, by PATCH with enabled: true")
    return webhook
