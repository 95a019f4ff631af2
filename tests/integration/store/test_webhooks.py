"""Webhooks and their deliveries: who sends which, when again, and when it is over."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import func, select, update

from jobs.database import Database, now
from jobs.errors import NoKeyError, NotFoundError, StateConflictError
from jobs.sealing import make_key, unseal
from jobs.settings import get_settings
from jobs.store import deliveries, outbox, webhooks
from jobs.store.deliveries import AT_ONCE, CLAIMED_S, JITTER, WAITS_S, Claim, Try
from jobs.tables import Delivery, DeliveryTry, Webhook
from jobs.webhooks import TEST
from tests.integration.store.turns import wait_for_blocked

REFUSED = 500
URL = "https://hooks.example/"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A key of the service."""
    make_key(tmp_path / "key")
    monkeypatch.setenv("RANKZERO_KEY_FILE", str(tmp_path / "key"))
    get_settings.cache_clear()
    yield
    get_settings.cache_clear()


@pytest.fixture
def webhook_id(database: Database) -> int:
    """A webhook that wants to be told of everything."""
    return register(database)


def register(database: Database) -> int:
    with database.session_scope() as session:
        added, _ = webhooks.add(
            session, url=URL, topics=[], labels={}, description=None, enabled=True, created_by="alice"
        )
        return added.id


def write(database: Database, webhook_id: int, *, count: int = 1) -> list[int]:
    """Write deliveries that are due now; return their ids."""
    with database.session_scope() as session:
        webhook = webhooks.get(session, webhook_id)
        return [outbox.add_test(session, webhook, at=now(session)).id for _ in range(count)]


def claim(database: Database, webhook_id: int) -> Claim | None:
    with database.session_scope() as session:
        return deliveries.claim(session, webhook_id)


def claimed(database: Database, webhook_id: int) -> Claim:
    found = claim(database, webhook_id)
    assert found is not None, "nothing is due"
    return found


def conclude(database: Database, found: Claim, status: int) -> None:
    error = None if status < 300 else f"answered {status}"
    with database.session_scope() as session:
        deliveries.conclude(session, found, Try(at=now(session), took_ms=3, status=status, error=error))


def look(database: Database, webhook_id: int, delivery_id: int) -> Delivery:
    """A delivery, with its tries."""
    with database.session_scope(read_only=True) as session:
        return session.scalars(deliveries.select_deliveries(webhook_id).where(Delivery.id == delivery_id)).one()


def time(database: Database) -> datetime:
    with database.session_scope(read_only=True) as session:
        return now(session)


def pass_time(database: Database, delivery_id: int) -> None:
    """Let so much time pass that a delivery is due, and whoever claimed it has lost the claim."""
    with database.session_scope() as session:
        past = now(session) - timedelta(seconds=1)
        session.execute(update(Delivery).where(Delivery.id == delivery_id).values(due_at=past))


def test_a_webhook_is_stored_with_its_key_sealed(database: Database) -> None:
    with database.session_scope() as session:
        webhook, key = webhooks.add(
            session, url=URL, topics=["job.failed"], labels={}, description=None, enabled=True, created_by=None
        )
    assert key.startswith("whsec_")
    assert key not in webhook.sealed_key
    assert unseal(webhook.sealed_key) == key


def test_a_service_with_no_key_stores_no_webhook_and_says_the_way_out(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RANKZERO_KEY_FILE")
    get_settings.cache_clear()
    with pytest.raises(NoKeyError, match=r"jobs\.sealing"):
        register(database)
    with database.session_scope(read_only=True) as session:
        assert session.execute(select(func.count(Webhook.id))).scalar_one() == 0


def test_a_new_key_seals_what_is_signed_from_then_on(database: Database, webhook_id: int) -> None:
    write(database, webhook_id)
    with database.session_scope() as session:
        _, key = webhooks.rotate(session, webhook_id)
    assert unseal(claimed(database, webhook_id).sealed_key) == key


def test_a_claim_has_what_is_sent_and_nobody_else_has_it_meanwhile(database: Database, webhook_id: int) -> None:
    (delivery_id,) = write(database, webhook_id)

    found = claimed(database, webhook_id)

    delivery = look(database, webhook_id, delivery_id)
    assert (found.delivery_id, found.url, found.message_id) == (delivery_id, URL, delivery.message_id)
    assert found.payload == delivery.payload
    assert found.payload["type"] == TEST
    assert (found.payload["data"], delivery.tries) == ({}, 1)
    assert delivery.due_at == found.claimed_at + timedelta(seconds=CLAIMED_S)
    assert claim(database, webhook_id) is None


def test_what_was_due_first_is_claimed_first(database: Database, webhook_id: int) -> None:
    first, second = write(database, webhook_id, count=2)
    pass_time(database, second)
    assert [claimed(database, webhook_id).delivery_id for _ in range(2)] == [second, first]


def test_a_claim_whose_worker_died_is_sent_by_another_with_the_same_id(database: Database, webhook_id: int) -> None:
    (delivery_id,) = write(database, webhook_id)
    lost = claimed(database, webhook_id)
    pass_time(database, delivery_id)

    again = claimed(database, webhook_id)

    assert (again.delivery_id, again.message_id) == (lost.delivery_id, lost.message_id)
    assert again.payload == lost.payload
    assert look(database, webhook_id, delivery_id).tries == 2


def test_a_message_with_which_each_worker_dies_is_given_up_as_one_that_fails(
    database: Database, webhook_id: int
) -> None:
    (delivery_id,) = write(database, webhook_id)
    for _ in range(len(WAITS_S) + 1):
        assert claimed(database, webhook_id).delivery_id == delivery_id
        pass_time(database, delivery_id)
    (other_id,) = write(database, webhook_id)

    assert claimed(database, webhook_id).delivery_id == other_id

    delivery = look(database, webhook_id, delivery_id)
    assert (delivery.due_at, delivery.given_up_at is None) == (None, False)
    assert [each.error for each in delivery.log] == [deliveries.UNTOLD]


def test_a_delivered_message_is_over_and_its_tries_are_kept(database: Database, webhook_id: int) -> None:
    (delivery_id,) = write(database, webhook_id)
    conclude(database, claimed(database, webhook_id), REFUSED)
    pass_time(database, delivery_id)
    conclude(database, claimed(database, webhook_id), 200)

    delivery = look(database, webhook_id, delivery_id)

    assert (delivery.due_at, delivery.claimed_at, delivery.given_up_at) == (None, None, None)
    assert delivery.delivered_at is not None
    assert [(each.status, each.error) for each in delivery.log] == [(500, "answered 500"), (200, None)]
    assert claim(database, webhook_id) is None


def test_it_is_tried_again_after_longer_and_longer_waits_and_then_given_up(database: Database, webhook_id: int) -> None:
    (delivery_id,) = write(database, webhook_id)
    for wait_s in WAITS_S:
        conclude(database, claimed(database, webhook_id), REFUSED)
        due_at = look(database, webhook_id, delivery_id).due_at
        assert due_at is not None
        waits_s = (due_at - time(database)).total_seconds()
        assert wait_s - 5 < waits_s <= wait_s * (1 + JITTER)  # less the time that the test takes to look
        pass_time(database, delivery_id)
    conclude(database, claimed(database, webhook_id), REFUSED)

    delivery = look(database, webhook_id, delivery_id)

    assert (delivery.due_at, delivery.delivered_at, delivery.tries) == (None, None, 9)
    assert delivery.given_up_at is not None
    assert len(delivery.log) == 9


def test_a_failure_told_after_the_claim_was_over_changes_nothing_but_the_log(
    database: Database, webhook_id: int
) -> None:
    (delivery_id,) = write(database, webhook_id)
    late = claimed(database, webhook_id)
    pass_time(database, delivery_id)
    current = claimed(database, webhook_id)

    conclude(database, late, REFUSED)

    delivery = look(database, webhook_id, delivery_id)
    assert (delivery.claimed_at, len(delivery.log)) == (current.claimed_at, 1)


def test_what_arrived_after_the_claim_was_over_is_not_sent_once_more(database: Database, webhook_id: int) -> None:
    (delivery_id,) = write(database, webhook_id)
    late = claimed(database, webhook_id)
    pass_time(database, delivery_id)

    conclude(database, late, 200)

    assert claim(database, webhook_id) is None
    assert look(database, webhook_id, delivery_id).delivered_at is not None


def test_no_more_than_a_few_of_one_webhook_are_sent_at_once_and_others_do_not_wait_for_it(
    database: Database, webhook_id: int
) -> None:
    other = register(database)
    write(database, webhook_id, count=AT_ONCE + 1)
    write(database, other)
    sent = [claimed(database, webhook_id) for _ in range(AT_ONCE)]

    assert claim(database, webhook_id) is None
    assert claimed(database, other).webhook_id == other
    conclude(database, sent[0], 200)
    assert claimed(database, webhook_id).delivery_id not in {each.delivery_id for each in sent}


def test_workers_that_claim_at_the_same_time_send_each_once_and_not_too_many_at_once(
    database: Database, webhook_id: int
) -> None:
    ids = write(database, webhook_id, count=3 * AT_ONCE)

    with ThreadPoolExecutor(2 * AT_ONCE) as workers:
        found = [each for each in workers.map(lambda _: claim(database, webhook_id), range(4 * AT_ONCE)) if each]

    assert [each.delivery_id for each in sorted(found, key=lambda each: each.delivery_id)] == ids[:AT_ONCE]


def test_what_a_worker_cannot_sign_counts_as_no_try_and_is_due_again_later(database: Database, webhook_id: int) -> None:
    (delivery_id,) = write(database, webhook_id)
    found = claimed(database, webhook_id)
    with database.session_scope() as session:
        deliveries.release(session, found, wait_s=60)

    delivery = look(database, webhook_id, delivery_id)

    assert (delivery.tries, delivery.claimed_at, delivery.log) == (0, None, [])
    assert delivery.due_at is not None
    assert delivery.due_at > time(database) + timedelta(seconds=30)


def test_a_webhook_that_is_gone_is_told_nothing_more(database: Database, webhook_id: int) -> None:
    first, second = write(database, webhook_id, count=2)
    found = claimed(database, webhook_id)
    with database.session_scope() as session:
        deliveries.disable(session, webhook_id)
    conclude(database, found, 410)

    assert [look(database, webhook_id, each).due_at for each in (first, second)] == [None, None]
    with database.session_scope(read_only=True) as session:
        assert webhooks.get(session, webhook_id).enabled is False


@pytest.mark.parametrize("change", ["disable", "remove"])
def test_what_was_written_by_a_transaction_that_did_not_know_of_the_change_is_given_up(
    database: Database, webhook_id: int, change: str
) -> None:
    with database.session_scope() as session:
        if change == "disable":
            webhooks.change(session, webhook_id, {"enabled": False})
        else:
            webhooks.remove(session, webhook_id)
    with database.session_scope() as session:
        outbox.add_test(session, session.get_one(Webhook, webhook_id), at=now(session))

    assert claim(database, webhook_id) is None
    with database.session_scope(read_only=True) as session:
        assert deliveries.due_webhooks(session) == []


def test_a_message_that_is_over_can_be_sent_again_with_all_of_its_tries(database: Database, webhook_id: int) -> None:
    (delivery_id,) = write(database, webhook_id)
    first = claimed(database, webhook_id)
    conclude(database, first, 200)

    with database.session_scope() as session:
        delivery = deliveries.redeliver(session, webhook_id, delivery_id)
        assert (delivery.tries, delivery.delivered_at) == (0, None)
    again = claimed(database, webhook_id)

    assert again.message_id == first.message_id
    conclude(database, again, REFUSED)
    due_at = look(database, webhook_id, delivery_id).due_at
    assert due_at is not None
    assert due_at < time(database) + timedelta(seconds=2 * WAITS_S[0])


def test_a_message_that_is_to_be_sent_again_while_it_is_given_up_is_pending(postgresql_url: str) -> None:
    database = Database(postgresql_url)
    webhook_id = register(database)
    (delivery_id,) = write(database, webhook_id)
    last = claimed(database, webhook_id)
    with database.session_scope() as session:
        session.execute(update(Delivery).values(tries=len(WAITS_S) + 1))

    def again() -> None:
        with database.session_scope() as session:
            deliveries.redeliver(session, webhook_id, delivery_id)

    with ThreadPoolExecutor(1) as other:
        with database.session_scope() as session:
            failed = Try(at=now(session), took_ms=3, status=REFUSED, error=f"answered {REFUSED}")
            deliveries.conclude(session, last, failed)
            session.flush()
            asked = other.submit(again)
            wait_for_blocked(database)
        asked.result()

    delivery = look(database, webhook_id, delivery_id)
    assert (delivery.tries, delivery.given_up_at, delivery.claimed_at) == (0, None, None)
    assert delivery.due_at is not None
    assert len(delivery.log) == 1
    database.dispose()


def test_nothing_is_sent_again_to_a_webhook_that_is_disabled_or_of_another(database: Database, webhook_id: int) -> None:
    other = register(database)
    (delivery_id,) = write(database, webhook_id)
    with pytest.raises(NotFoundError), database.session_scope() as session:
        deliveries.redeliver(session, other, delivery_id)
    with database.session_scope() as session:
        webhooks.change(session, webhook_id, {"enabled": False})
    with pytest.raises(StateConflictError, match="enable it first"), database.session_scope() as session:
        deliveries.redeliver(session, webhook_id, delivery_id)
    with pytest.raises(StateConflictError, match="enable it first"), database.session_scope() as session:
        deliveries.add_test(session, webhook_id)


def test_old_deliveries_are_forgotten_with_their_tries_and_what_is_to_be_sent_is_not(
    database: Database, webhook_id: int
) -> None:
    over, pending, other, young = write(database, webhook_id, count=4)
    for each in (over, pending, other, young):
        found = claimed(database, webhook_id)
        conclude(database, found, REFUSED if each == pending else 200)
    with database.session_scope() as session:
        long_ago = now(session) - timedelta(days=9)
        old = update(Delivery).where(Delivery.id.in_([over, pending, other]))
        session.execute(old.values(created_at=long_ago))
    gone = []
    for _ in range(3):
        with database.session_scope() as session:
            gone.append(deliveries.forget(session, older_than=timedelta(days=8), limit=1))

    assert gone == [1, 1, 0]
    with database.session_scope(read_only=True) as session:
        assert session.scalars(select(Delivery.id).order_by(Delivery.id)).all() == [pending, young]
        assert session.scalars(select(DeliveryTry.delivery_id).order_by(DeliveryTry.id)).all() == [pending, young]


def test_a_payload_is_the_same_bytes_at_each_try(database: Database, webhook_id: int) -> None:
    (delivery_id,) = write(database, webhook_id)
    bodies = []
    for _ in range(2):
        bodies.append(json.dumps(claimed(database, webhook_id).payload))
        pass_time(database, delivery_id)
    assert bodies[0] == bodies[1]
